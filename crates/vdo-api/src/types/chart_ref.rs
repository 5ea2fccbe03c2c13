// SPDX-License-Identifier: Apache-2.0
//! `ChartRef`: the locations and the digest of a chart package.

use super::Digest;
use serde::{Deserialize, Serialize};

/// Where a chart package may be found, and the digest its bytes must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChartRef {
    /// Locations in order of preference; relative ones are relative to the index that names them.
    pub urls: Vec<String>,
    /// The digest of the package, whichever location it comes from.
    pub digest: Digest,
}
