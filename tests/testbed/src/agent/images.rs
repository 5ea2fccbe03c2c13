// SPDX-License-Identifier: Apache-2.0
//! Which images a node can pull.

use std::collections::BTreeMap;

use super::image::Image;

/// The images by their references, and the prefixes of references that no other registry has.
#[derive(Debug, Default)]
pub(super) struct Images {
    claimed: Vec<String>,
    served: BTreeMap<String, Image>,
}

impl Images {
    pub(super) fn new(claimed: Vec<String>) -> Self {
        Self {
            claimed,
            served: BTreeMap::new(),
        }
    }

    /// Whether pods with this image are left to the agent; kwok plays the others.
    pub(super) fn claims(&self, reference: &str) -> bool {
        self.claimed.iter().any(|prefix| reference.starts_with(prefix.as_str()))
    }

    /// Whether a container with this image, in a pod that is left to the agent, is run or fails; others are only said to run.
    pub(super) fn runs(&self, reference: &str) -> bool {
        self.claims(reference) || self.served.contains_key(reference)
    }

    pub(super) fn serve(&mut self, reference: &str, image: Image) {
        self.served.insert(reference.to_owned(), image);
    }

    pub(super) fn withdraw(&mut self, reference: &str) {
        self.served.remove(reference);
    }

    /// The image of a reference by tag, by digest, or by both, of which the digest counts.
    pub(super) fn pull(&self, reference: &str) -> Option<&Image> {
        let Some((name, digest)) = reference.split_once('@') else {
            return self.served.get(reference);
        };
        let has = |(served, image): &(&String, &Image)| repository(served) == repository(name) && image.digests.contains(digest);
        self.served.iter().find(has).map(|(_, image)| image)
    }
}

/// A reference without its tag.
fn repository(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or(reference);
    match name.rsplit_once(':') {
        // What follows the colon of a port has a slash.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::image::RunConfig;

    #[test]
    fn images_references_of_a_served_image_are_found() {
        let mut images = Images::new(vec!["registry.test:5000/vdo/".into()]);
        let image = Image {
            root: "/nowhere".into(),
            config: RunConfig::default(),
            digests: ["sha256:aa".to_owned()].into(),
        };
        images.serve("registry.test:5000/vdo/operator:v1", image);
        for (reference, claimed, found) in [
            ("registry.test:5000/vdo/operator:v1", true, true),
            ("registry.test:5000/vdo/operator@sha256:aa", true, true),
            ("registry.test:5000/vdo/operator:v9@sha256:aa", true, true),
            ("registry.test:5000/vdo/operator@sha256:bb", true, false),
            ("registry.test:5000/vdo/operator:v2", true, false),
            ("registry.test:5000/vdo/operator", true, false),
            ("registry.test:5000/vdo/other@sha256:aa", true, false),
            ("elsewhere.test/vdo/operator:v1", false, false),
        ] {
            assert_eq!(
                (images.claims(reference), images.pull(reference).is_some()),
                (claimed, found),
                "{reference}"
            );
        }
        assert!(!images.runs("elsewhere.test/vdo/operator:v1"), "it is played");
        images.serve(
            "elsewhere.test/vdo/operator:v1",
            images.served["registry.test:5000/vdo/operator:v1"].clone(),
        );
        assert!(images.runs("elsewhere.test/vdo/operator:v1") && !images.claims("elsewhere.test/vdo/operator:v1"));
        images.withdraw("registry.test:5000/vdo/operator:v1");
        assert!(images.pull("registry.test:5000/vdo/operator:v1").is_none());
    }
}
