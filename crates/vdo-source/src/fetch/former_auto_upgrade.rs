// SPDX-License-Identifier: Apache-2.0
//! Whether the key `auto-upgrade` in a ConfigMap of the original operator switches upgrades off (pure).

use super::{CONFIG_MAPS, Named, SOURCE_SECRET};

/// The key of the ConfigMap.
const UPGRADE: &str = "auto-upgrade";

impl Named {
    /// The ConfigMap of the original operator that switches upgrades off, if one does.
    #[must_use]
    pub fn frozen_by(&self) -> Option<&'static str> {
        let disables = |name: &str| {
            self.value(name, UPGRADE)
                .is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
        };
        CONFIG_MAPS.into_iter().find(|name| *name != SOURCE_SECRET && disables(name))
    }

    /// Whether upgrades are switched off.
    #[must_use]
    pub fn frozen(&self) -> bool {
        self.frozen_by().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_upgrade_is_switched_off_by_a_config_map_of_the_original_operator_only() {
        for (map, key, value, frozen) in [
            ("comp-matrix-config", "auto-upgrade", "disabled", true),
            ("comp-matrix-config", "auto-upgrade", "enabled", false),
            ("vdo-matrix", "auto-upgrade", "disabled", false),
            ("comp-matrix-config", "versionConfigURL", "https://a.test/index.yaml", false),
        ] {
            let mut named = Named::default();
            named
                .maps
                .entry(map.to_owned())
                .or_default()
                .insert(key.to_owned(), value.to_owned());
            assert_eq!(named.frozen(), frozen, "{map}, {key}: {value}");
        }
        assert!(!Named::default().frozen());
    }
}
