// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn pipe(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
}

#[test]
fn file_written_over_a_link_replaces_the_link_and_never_its_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("target");
    for readers in [Readers::Owner, Readers::Usual] {
        fs::write(&target, "dear").expect("written");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o604)).expect("it is ours");
        for (name, to) in [
            ("link", "target"),
            ("absolute", target.to_str().expect("text")),
            ("nowhere", "later"),
            ("loop", "loop"),
        ] {
            let link = folder.path().join(name);
            let _ = fs::remove_file(&link);
            symlink(to, &link).expect("a link");
            write(&link, b"new", readers).expect(name);
            assert!(!link.is_symlink(), "{name}");
            assert_eq!(fs::read(&link).expect("it is there"), b"new", "{name}");
        }
        assert_eq!(
            (fs::read(&target).expect("it is there").as_slice(), mode(&target)),
            (&b"dear"[..], 0o604)
        );
    }
    assert_eq!(names(folder.path()), ["absolute", "link", "loop", "nowhere", "target"]);
}

#[test]
fn file_for_its_owner_is_readable_by_no_one_else_and_another_keeps_its_readers() {
    let folder = tempfile::tempdir().expect("a folder");
    for (before, readers, expected) in [
        (None, Readers::Owner, 0o600),
        (Some(0o644), Readers::Owner, 0o600),
        (Some(0o666), Readers::Owner, 0o600),
        (Some(0o640), Readers::Usual, 0o640),
        (Some(0o600), Readers::Usual, 0o600),
    ] {
        let file = folder.path().join("file");
        let _ = fs::remove_file(&file);
        if let Some(before) = before {
            fs::write(&file, "old").expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(before)).expect("it is ours");
        }
        let output = Output::to(&file, readers).expect("a file");
        if readers == Readers::Owner {
            assert_eq!(mode(output.unfinished().expect("it is not complete")), 0o600, "{before:?}");
        }
        output.write(b"new").expect("written");
        assert_eq!(
            (fs::read(&file).expect("it is there").as_slice(), mode(&file)),
            (&b"new"[..], expected),
            "{before:?}"
        );
    }
}

#[test]
fn file_that_is_dropped_or_has_no_place_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = NewFile::beside(folder.path(), "file", Readers::Usual).expect("a file");
    let second = NewFile::beside(folder.path(), "file", Readers::Usual).expect("another file");
    assert_ne!(first.path(), second.path());
    drop((first, second));
    drop(Output::to(&folder.path().join("file"), Readers::Owner));
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    for place in [folder.path().join("folder"), "/".into(), folder.path().join("no/such")] {
        assert!(write(&place, b"new", Readers::Usual).is_err(), "{}", place.display());
    }
    assert_eq!(names(folder.path()), ["folder"]);
}

#[test]
fn file_into_a_pipe_or_device_is_written_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let (fifo, link) = (folder.path().join("pipe"), folder.path().join("link"));
    pipe(&fifo);
    symlink("pipe", &link).expect("a link");
    for place in [&fifo, &link] {
        let reader = fifo.clone();
        let read = std::thread::spawn(move || fs::read(reader));
        write(place, b"new", Readers::Owner).expect("written");
        assert_eq!(read.join().expect("it ends").expect("read"), b"new");
    }
    write(Path::new("/dev/null"), b"new", Readers::Owner).expect("written");
    assert_eq!(names(folder.path()), ["link", "pipe"]);
}

#[test]
fn read_takes_regular_files_within_the_limit_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, fifo) = (folder.path().join("file"), folder.path().join("pipe"));
    fs::write(&file, "four").expect("written");
    pipe(&fifo);
    symlink("file", folder.path().join("link")).expect("a link");
    assert_eq!(read(&file, 4).expect("read"), b"four");
    assert_eq!(read(&folder.path().join("link"), usize::MAX).expect("read"), b"four");
    assert_eq!(read(&file, 3).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
    for other in [
        fifo.as_path(),
        folder.path(),
        Path::new("/dev/zero"),
        Path::new("/dev/null"),
        Path::new("/proc/self/fd/1"),
    ] {
        let found = read(other, 10).map_err(|error| error.to_string());
        // What the process writes to may be a regular file here.
        let is_file = fs::metadata(other).is_ok_and(|found| found.is_file());
        assert!(
            is_file || found.as_ref().is_err_and(|error| error.contains("not a regular file")),
            "{}: {found:?}",
            other.display()
        );
    }
}

#[test]
fn own_folder_is_made_for_us_alone_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("work");
    own_folder(&place).expect("made");
    own_folder(&place).expect("ours");
    assert_eq!(mode(&place), 0o700);
    fs::write(folder.path().join("file"), "").expect("written");
    symlink("work", folder.path().join("link")).expect("a link");
    fs::create_dir(folder.path().join("open")).expect("a folder");
    fs::set_permissions(folder.path().join("open"), fs::Permissions::from_mode(0o777)).expect("it is ours");
    for (name, problem) in [("file", "not a folder"), ("link", "a link"), ("open", "written by other users")] {
        let error = own_folder(&folder.path().join(name)).expect_err(name).to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn resume_takes_a_file_of_its_own_and_no_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (target, part) = (folder.path().join("target"), folder.path().join("part"));
    fs::write(&target, "dear").expect("written");
    resume(&part).expect("made").write_all(b"half").expect("written");
    assert_eq!(resume(&part).expect("ours").metadata().expect("it is open").len(), 4);
    symlink("target", folder.path().join("link")).expect("a link");
    fs::hard_link(&target, folder.path().join("hard")).expect("a link");
    pipe(&folder.path().join("pipe"));
    for name in ["link", "hard", "pipe"] {
        assert!(resume(&folder.path().join(name)).is_err(), "{name}");
    }
    assert_eq!(fs::read(&target).expect("it is there"), b"dear");
}

#[tokio::test]
async fn aside_of_what_does_not_end_is_left_behind() {
    const LONG: Duration = Duration::from_secs(30);
    assert_eq!(aside(LONG, || 1).await.expect("it ends"), 1);
    let (held, holds) = std::sync::mpsc::channel::<()>();
    let waits = aside(Duration::from_millis(10), move || holds.recv()).await;
    assert_eq!(waits.map(|_| ()).expect_err("it does not end").kind(), io::ErrorKind::TimedOut);
    drop(held);
    let panics = aside(LONG, || assert!(std::hint::black_box(false), "in a thread of its own")).await;
    assert!(panics.is_err());
}
