// SPDX-License-Identifier: Apache-2.0
//! The kinds of evidence that a pod runs a driver (image, argument, socket folder, mention), and how strong each kind is.

use std::fmt;

/// By what a driver is recognised, in a container or a volume of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The image of the driver.
    Image(String),
    /// An argument that only the driver has.
    Argument(String),
    /// The folder on the node in which the driver listens.
    Socket(String),
    /// The name of the driver in an argument or a variable, as a backup tool or a monitor has it, too.
    Mention(String),
}

impl Evidence {
    /// Whether the pod runs the driver.
    #[must_use]
    pub const fn is_proof(&self) -> bool {
        !matches!(self, Self::Mention(_))
    }

    /// The stronger evidence has the higher number.
    pub(crate) const fn degree(&self) -> u8 {
        match self {
            Self::Image(_) => 3,
            Self::Argument(_) => 2,
            Self::Socket(_) => 1,
            Self::Mention(_) => 0,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(image) => write!(f, "image {image}"),
            Self::Argument(argument) => write!(f, "argument {argument}"),
            Self::Socket(path) => write!(f, "folder {path}"),
            Self::Mention(text) => write!(f, "it mentions {text}"),
        }
    }
}
