// SPDX-License-Identifier: Apache-2.0
//! Names that people choose.

/// A name that people choose may have a comma in it. Only words of a grammar of ours are separated by commas; all else is repeated.
#[test]
fn cli_args_free_names_are_never_split() {
    const GRAMMAR: [&str; 12] = [
        "[DRIVER=]NAME",
        "VERSION",
        "NAME[=VERSION]",
        "[NAME=]VERSION",
        "NAME=VERSION",
        "DRIVER=VERSION",
        "DRIVER[=VERSIONS]",
        "LIST",
        "CHANGE",
        "OS/ARCH",
        "PREFIX=PREFIX",
        "HOST",
    ];
    fn look(command: &clap::Command, seen: &mut usize) {
        for arg in command.get_arguments().filter(|arg| arg.get_value_delimiter() == Some(',')) {
            let flag = arg.get_long().unwrap_or_default();
            let name = arg
                .get_value_names()
                .and_then(|names| names.first())
                .map_or("", |name| name.as_str());
            assert!(
                GRAMMAR.contains(&name) || (flag, name) == ("feature", "NAME"),
                "{} --{flag} {name} is split at commas",
                command.get_name()
            );
            *seen += 1;
        }
        command.get_subcommands().for_each(|command| look(command, seen));
    }
    let mut seen = 0;
    look(&super::command(), &mut seen);
    assert!(seen > 5, "{seen}");
    let name = "FRA1 - Rhein, Hessen";
    for line in [
        &[
            "deploy",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datacenter",
            name,
            "--datacenter",
            "DC2",
        ][..],
        &["configure", "connection", "vc1", "--datacenter", name, "--datacenter", "DC2"],
        &[
            "doctor",
            "--pre",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datacenter",
            name,
            "--datacenter",
            "DC2",
        ],
        &[
            "users",
            "create",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datastore",
            name,
            "--datastore",
            "DC2",
        ],
        &[
            "users",
            "create",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--storage-policy",
            name,
            "--storage-policy",
            "DC2",
        ],
    ] {
        let words = ["vdoctl"].iter().chain(line);
        let mut matches = super::command()
            .try_get_matches_from(words)
            .unwrap_or_else(|error| panic!("{line:?}: {error}"));
        while let Some((_, below)) = matches.remove_subcommand() {
            matches = below;
        }
        let id = line[line.len() - 2].trim_start_matches("--").replace('-', "_");
        let found: Vec<String> = matches.remove_many(&id).map(Iterator::collect).unwrap_or_default();
        assert_eq!(found, [name, "DC2"], "{line:?}");
    }
}
