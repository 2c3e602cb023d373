//! Files in directories where others are, were, or mean ill.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// Where the process with an umask of its own makes its file.
const UMASK_HOME: &str = "MSPROF_TEST_UMASK_HOME";

fn open(home: &tempfile::TempDir) -> Directory {
    Directory::open(home.path()).expect("opened")
}

fn left(home: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(home.path())
        .expect("read")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_hidden_until_it_is_whole_and_replaces_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = open(&home);
    std::fs::write(home.path().join("a"), "mine").expect("written");
    symlink(home.path().join("elsewhere"), home.path().join("b")).expect("linked");
    let mut file = dir.begin().expect("begun");
    file.write_all(b"text").expect("written");
    let hidden = left(&home).into_iter().find(|name| name.starts_with('.'));
    let hidden = hidden.expect("hidden");
    let owner = Owner::this();
    assert_eq!(hidden, format!(".msprof_{owner}_0.partial"));
    for taken in ["a", "b"] {
        let error = file.name_it(taken).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
    file.name_it("c").expect("named");
    drop(file);
    assert_eq!(left(&home), ["a", "b", "c"]);
    let read = |name: &str| std::fs::read(home.path().join(name)).expect("read");
    assert_eq!((read("a"), read("c")), (b"mine".to_vec(), b"text".to_vec()));
    let mut file = dir.begin().expect("begun");
    file.replace("b").expect("replaced");
    drop(file);
    let kind = std::fs::symlink_metadata(home.path().join("b")).expect("there");
    assert!(kind.is_file());
    assert!(!home.path().join("elsewhere").exists());
}

#[test]
fn the_ways_of_other_file_systems_replace_nothing_either() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = open(&home);
    let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("put");
    put("mine", "mine");
    put("new", "new");
    let taken = take_name(dir.fd(), "new", "mine".as_ref());
    assert_eq!(taken, Err(Errno::EXIST));
    assert_eq!(take_name(dir.fd(), "new", "named".as_ref()), Ok(()));
    assert_eq!(
        take_name(dir.fd(), "none", "other".as_ref()),
        Err(Errno::NOENT)
    );
    assert_eq!(left(&home), ["mine", "named"]);
    let read = std::fs::read(home.path().join("named"));
    assert_eq!(read.expect("read"), b"new");
}

#[test]
fn one_that_is_dropped_leaves_nothing_and_scratch_has_no_name() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = open(&home);
    let mut file = dir.begin().expect("begun");
    file.write_all(b"half").expect("written");
    let second = dir.begin().expect("begun");
    assert!(second.hidden_name().ends_with("_1.partial"));
    drop((file, second));
    let scratch = dir.scratch().expect("made");
    assert_eq!(left(&home), [""; 0]);
    assert_eq!(scratch.metadata().expect("open").len(), 0);
}

#[test]
fn what_a_killed_export_left_is_removed_and_nothing_else_is() {
    let home = tempfile::tempdir().expect("a directory");
    let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("put");
    let this = Owner::this().to_string();
    let parts: Vec<&str> = this.split('_').collect();
    // Of this boot and this process id, and of a process that began at another time; of another boot.
    let earlier = format!("{}_{}_1", parts[0], parts[1]);
    let boot = if parts[0] == "0000000a" {
        "0000000b"
    } else {
        "0000000a"
    };
    let rebooted = format!("{boot}_{}_{}", parts[1], parts[2]);
    put(&format!(".msprof_{earlier}_0.partial"), "half");
    put(&format!(".msprof_{rebooted}_12.partial"), "half");
    put(".msprof_20260605155111.partial", &earlier);
    let kept = [
        format!(".msprof_{this}_7.partial"),
        format!(".msprof_{earlier}_3.partial"),
        format!(".msprof_{earlier}_4.partial"),
        ".msprof_20260605155112.partial".to_owned(),
        ".msprof_20260605155113.partial".to_owned(),
        format!("msprof_{earlier}_0.partial"),
        "msprof_20260605155111.json.partial".to_owned(),
        "x".to_owned(),
    ];
    let victim = home.path().join("x");
    put("x", "precious");
    // Of a living process; a link; a directory; held by one that cannot be seen; a claim of a living process, and of nobody.
    put(&kept[0], "");
    symlink(&victim, home.path().join(&kept[1])).expect("linked");
    std::fs::create_dir(home.path().join(&kept[2])).expect("made");
    put(&kept[3], &this);
    put(&kept[4], "whose?");
    put(&kept[5], "");
    put(&kept[6], "");
    let held = format!(".msprof_{rebooted}_5.partial");
    put(&held, "");
    let holder = File::open(home.path().join(&held)).expect("opened");
    rustix::fs::flock(&holder, FlockOperation::NonBlockingLockExclusive).expect("locked");
    open(&home);
    let mut expected = kept.to_vec();
    expected.push(held.clone());
    expected.sort();
    assert_eq!(left(&home), expected);
    assert_eq!(std::fs::read(&victim).expect("read"), b"precious");
    drop(holder);
    open(&home);
    assert!(!left(&home).contains(&held));
}

#[test]
fn the_mode_is_that_of_the_stock_collector_whatever_the_umask() {
    let home = tempfile::tempdir().expect("a directory");
    // An umask is the whole process's: one of its own.
    let child = Command::new("sh")
        .args(["-c", "umask 077; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().expect("a path"))
        .args(["--exact", "--ignored", "newfile::tests::with_an_umask"])
        .env(UMASK_HOME, home.path())
        .output()
        .expect("run");
    assert!(child.status.success(), "{child:?}");
    let mode = std::fs::metadata(home.path().join("file"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
#[ignore = "the part of the_mode_is_that_of_the_stock_collector_whatever_the_umask that has the umask"]
fn with_an_umask() {
    let home = std::env::var_os(UMASK_HOME).expect("a directory");
    let dir = Directory::open(Path::new(&home)).expect("opened");
    dir.begin().expect("begun").name_it("file").expect("named");
}
