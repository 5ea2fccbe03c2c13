// SPDX-License-Identifier: Apache-2.0
//! The macro `written_as_text!`, which gives digests and versions the JSON schema of a string.

use super::{Digest, DriverVersion, KubernetesVersion, VcenterVersion};

/// The JSON schema of types that are written as a text: that of a text.
#[macro_export]
macro_rules! written_as_text {
    ($($name:ty),+) => {
        $(
            impl ::schemars::JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                    <String as ::schemars::JsonSchema>::json_schema(generator)
                }
            }
        )+
    };
}

written_as_text!(Digest, DriverVersion, KubernetesVersion, VcenterVersion);
