// SPDX-License-Identifier: Apache-2.0
//! Passwords of forty shapes: what people choose, what generators make, and what some language on the way may trip over.

/// All of them. Each is long enough that it stands nowhere by chance.
pub fn all() -> Vec<String> {
    let printable: String = (' '..='~').collect();
    let backwards: String = ('!'..='~').rev().collect();
    let token = |number: u32| format!("Kx{:06}qZ{:06}", number * 7919 % 999_983, number * 104_729 % 999_979);
    let around = |number: u32, before: &str, after: &str| format!("{before}{}{after}", token(number));
    vec![
        // Everything that can be typed.
        printable,
        backwards,
        "plain-and-simple-0001".into(),
        // Quotes, escapes, references, placeholders.
        around(1, "\"", "\""),
        around(2, "'", "'"),
        around(3, "`", "`"),
        around(4, "\\", "\\"),
        around(5, "\\n", "\\\""),
        around(6, "&amp;", "&lt;"),
        around(7, "<", ">"),
        around(8, "]]>", "<![CDATA["),
        around(9, "%41", "%zz"),
        around(10, "${", "}"),
        around(11, "$(", ")"),
        around(12, "{{", "}}"),
        around(13, "{%", "%}"),
        around(14, "#", ";"),
        // Words of YAML and INI.
        around(15, "- ", ": "),
        around(16, "!!str ", " # no"),
        around(17, "&anchor *", " |"),
        around(18, "[section]", "=value"),
        around(19, "key = ", " ; comment"),
        around(20, "@", "%"),
        around(21, "?", "~"),
        // Spaces that may be trimmed on the way.
        around(22, " ", " "),
        around(23, "  two", "  spaces  "),
        around(24, "\t", "\t"),
        around(25, "one\n", "two"),
        around(26, "one\r\n", "two"),
        // Addresses.
        around(27, "https://user:", "@host/path?a=b&c=d"),
        around(28, "/etc/", "/../"),
        // What looks like something else.
        format!("0x{}", "c0ffee00c0ffee01"),
        "123456789012345678901".into(),
        "dGhpcyBpcyBubyBiYXNlNjQgYnV0IGxvb2tzIGl0==".into(),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJub2JvZHkifQ.c2ln".into(),
        // Beyond ASCII.
        "пароль-на-русском-языке".into(),
        "密码很长很长很长密码很长".into(),
        "naïve-façade-Größe-ß-ﬁ".into(),
        "🔑🔐🗝️ emoji password 🔒".into(),
        // Longer than a line of base64, and than what old tools take.
        format!("{}{}", "long-", token(31).repeat(12)),
        around(32, "seventy-two-characters-and-no-more-", "-0123456789012345678901"),
    ]
}
