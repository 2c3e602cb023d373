//! Where others could put something in the directory's place.

use super::*;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

fn directory_of_mode(within: &Path, name: &str, mode: u32) -> PathBuf {
    let path = within.join(name);
    std::fs::create_dir(&path).expect("a directory");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode");
    path
}

#[test]
fn a_parent_in_which_others_may_rename_is_refused_with_the_way_out_and_left_as_it_was() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let open = directory_of_mode(temp.path(), "open", 0o777);
    let link = open.join("link");
    symlink(temp.path(), &link).expect("link");
    for parent in [open.clone(), link.clone()] {
        let error = ProfDir::create(setup(&parent)).expect_err("refused");
        assert!(matches!(error, ProfDirError::Shared { .. }), "{error}");
        let text = error.to_string();
        for part in [
            "/open ",
            "all users",
            "0777",
            "MSPROF_AGENT_ALLOW_SHARED_DIR=1",
        ] {
            assert!(text.contains(part), "no {part}: {text}");
        }
    }
    assert_eq!(std::fs::read_dir(&open).expect("there").count(), 1);
    assert_eq!(std::fs::read_dir(temp.path()).expect("there").count(), 1);
    // What is made below it is ours alone.
    let below = ProfDir::create(setup(&open.join("new/one"))).expect("made");
    assert_eq!(below.remarks(), [] as [String; 0]);
}

#[test]
fn a_parent_in_which_others_may_rename_is_taken_and_said_if_the_user_wants_that() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let open = directory_of_mode(temp.path(), "open", 0o777);
    let setup = Setup {
        allow_shared: true,
        ..setup(&open)
    };
    let dir = ProfDir::create(setup).expect("made");
    assert!(dir.path().starts_with(&open));
    let [remark] = dir.remarks() else {
        panic!("{:?}", dir.remarks());
    };
    assert!(remark.contains("can be changed by all users"), "{remark}");
}

#[test]
fn a_sticky_parent_and_one_of_root_or_ours_are_taken_without_a_word() {
    let temp = tempfile::tempdir().expect("temporary directory");
    for mode in [0o1777, 0o755, 0o700] {
        let parent = directory_of_mode(temp.path(), &format!("{mode:o}"), mode);
        let dir = ProfDir::create(setup(&parent)).expect("made");
        assert_eq!(dir.remarks(), [] as [String; 0], "{mode:o}");
    }
}

/// A container whose root writes to a directory of the host's user.
#[test]
fn root_writes_to_a_directory_of_somebody_else_and_says_whose_it_is() {
    if crate::process::effective_uid() != 0 {
        crate::skip::skipped(format_args!("only root gives directories away"));
        return;
    }
    let temp = tempfile::tempdir().expect("temporary directory");
    for mode in [0o755, 0o775] {
        let parent = directory_of_mode(temp.path(), &format!("{mode:o}"), mode);
        chown(&parent, Some(1000), Some(1000)).expect("given away");
        let dir = ProfDir::create(setup(&parent)).expect("made");
        let [remark] = dir.remarks() else {
            panic!("{:?}", dir.remarks());
        };
        assert!(remark.contains("belongs to uid 1000"), "{remark}");
    }
}
