//! Writes the generated files of the repository: `cargo run --example generate -- crds`.

mod crds;

use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

/// What can be generated, by the word on the command line.
const PARTS: [(&str, fn() -> Outcome); 1] = [("crds", crds::crds)];

fn main() -> Outcome {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.is_empty() || wanted.iter().any(|word| !PARTS.iter().any(|(name, _)| name == word)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(format!("name what to generate: {}", names.join(", ")).into());
    }
    PARTS.iter().filter(|(name, _)| wanted.iter().any(|word| word == name)).try_for_each(|(_, write)| write())
}
