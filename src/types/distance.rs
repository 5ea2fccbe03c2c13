/// How many characters have to be inserted, removed, replaced or swapped with their neighbour.
pub use strsim::osa_distance as distance;

/// The word of a list that looks most like this one, if any is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let all = known.into_iter().map(|other| (distance(word, other), other));
    all.filter(|(distance, other)| *distance <= (other.len() / 3).max(1))
        .min()
        .map(|(_, other)| other)
}
