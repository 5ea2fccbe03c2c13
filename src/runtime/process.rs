//! What the process asks of the kernel for itself, before it holds anything worth protecting.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Keeps passwords out of files: no core dump is written when the process aborts, and no other process of the same user may
/// read its memory. A kernel that refuses is no reason not to work.
pub fn keep_memory_private() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be switched off; a crash may write passwords to a file");
    }
    // A pipe to a program that collects core dumps ignores the limit, so the process is marked as not dumpable as well.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "the memory of this process cannot be closed to other processes of the same user");
    }
}

/// Takes as many file descriptors as the system grants. The limit at the start is often 1,024 for the sake of old programs, and
/// each watch and each vCenter needs one.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, highest) {
        tracing::warn!(%error, limit = ?limit.current, "the limit of file descriptors stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_raised_is_the_highest_granted() {
        raise_descriptor_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
