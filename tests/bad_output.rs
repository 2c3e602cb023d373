//! Output that cannot be written: the start or the stop says so, and nothing else happens.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use support::client::{ByteClient, FAILED, NOT_STARTED, START, STOP, assert_serves, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::puppet::{self, Puppet};
use support::wait::wait_until;

#[test]
fn an_output_directory_that_cannot_be_made_fails_the_start_and_changes_nothing() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let file = home.path().join("file");
    fs::write(&file, "a regular file").expect("written");
    for bad in [file.join("below"), file.clone()] {
        let mut client = ByteClient::open(puppet.socket(), &params(&bad));
        assert_eq!(client.command(START), FAILED, "{}", bad.display());
        assert_eq!(client.command(STOP), NOT_STARTED);
        assert_eq!(client.command(START), FAILED, "again");
        client.quit();
    }
    let left = fs::read_to_string(&file).expect("still a file");
    assert_eq!(left, "a regular file");
    Proc::of(puppet.pid()).idle_resources();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    client.stop();
    client.quit();
    assert_eq!(prof_dirs(&home.output()).len(), 1);
}

#[test]
fn an_output_directory_that_cannot_be_made_is_explained_to_our_own_client() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let file = home.path().join("file");
    fs::write(&file, "").expect("written");
    let bad = file.join("below");
    let mut client = puppet.connect();
    client.introduce_extended(&params(&bad));
    let reply = client.ask("start");
    assert_eq!(reply["outcome"], "failed");
    let why = reply["error"].as_str().expect("a reason");
    assert!(why.contains(bad.to_str().expect("UTF-8")), "{why}");
    assert_eq!(client.ask("status")["capturing"], false);
}

#[test]
fn an_output_directory_that_everybody_may_change_is_refused_unless_the_program_is_told_to_take_it()
{
    let home = Home::new();
    let open = home.path().join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("mode is set");
    let puppet = Puppet::start(&home);
    let mut client = puppet.connect();
    client.introduce_extended(&params(&open));
    let reply = client.ask("start");
    assert_eq!(reply["outcome"], "failed");
    let why = reply["error"].as_str().expect("a reason");
    let parts = [
        "can be changed by all users",
        "MSPROF_AGENT_ALLOW_SHARED_DIR=1",
    ];
    for part in parts {
        assert!(why.contains(part), "{why}");
    }
    assert!(prof_dirs(&open).is_empty());

    let told = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_ALLOW_SHARED_DIR", "1");
    let puppet = Puppet::start_program(&home, told);
    puppet.wait_socket();
    let mut client = puppet.connect();
    client.introduce_extended(&params(&open));
    let reply = client.ask("start");
    assert_eq!(reply["outcome"], "success", "{reply}");
    assert!(reply["notes"].to_string().contains(parts[0]), "{reply}");
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "success", "{stopped}");
    let notes = support::prof::Prof::open(&only_prof_dir(&open)).ledger()["notes"].to_string();
    assert!(notes.contains(parts[0]), "{notes}");
}

/// A puppet that sees `size` bytes of tmpfs at `dir`, in a mount namespace of its own. `None`, said on
/// stderr, where that is not permitted.
fn puppet_with_small_disk(home: &Home, dir: &Path, size: &str) -> Option<Puppet> {
    fs::create_dir(dir).expect("a directory");
    let target = std::ffi::CString::new(dir.to_str().expect("UTF-8")).expect("no NUL");
    let options = std::ffi::CString::new(format!("size={size}")).expect("no NUL");
    let mount = move || {
        // SAFETY: plain system calls with strings that outlive them.
        let results = unsafe {
            let unshared = libc::unshare(libc::CLONE_NEWNS);
            let private = libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            );
            let mounted = libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            );
            [unshared, private, mounted]
        };
        match results {
            [0, 0, 0] => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes system calls only.
    let program = unsafe { home.armed(puppet::path()).before_exec(mount.clone()) };
    // SAFETY: as above.
    let probe = unsafe { home.plain("/bin/true").before_exec(mount) };
    if let Err(error) = probe.try_spawn() {
        support::skip::skipped(format_args!("no tmpfs can be mounted here ({error})"));
        return None;
    }
    let puppet = Puppet::start_armed(home, program);
    Some(puppet)
}

/// `path` as the puppet sees it.
fn inside(puppet: &Puppet, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", puppet.pid()));
    root.join(path.strip_prefix("/").expect("absolute"))
}

#[test]
fn a_start_with_less_than_20_mb_of_room_fails_and_leaves_nothing() {
    let home = Home::new();
    let disk = home.path().join("disk");
    let Some(puppet) = puppet_with_small_disk(&home, &disk, "16m") else {
        return;
    };
    let mut client = ByteClient::open(puppet.socket(), &params(&disk.join("output")));
    assert_eq!(client.command(START), FAILED);
    assert_eq!(client.command(STOP), NOT_STARTED);
    client.quit();
    let left: Vec<_> = fs::read_dir(inside(&puppet, &disk))
        .expect("the disk")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_disk_that_fills_up_ends_the_capture_with_whole_records_and_a_failed_stop() {
    let home = Home::new();
    let disk = home.path().join("disk");
    let Some(mut puppet) = puppet_with_small_disk(&home, &disk, "24m") else {
        return;
    };
    let mut client = puppet.connect();
    client.introduce_extended(&params(&disk));
    assert_eq!(client.ask("start")["outcome"], "success");
    // 40 bytes each; what is lost under way does not fill the disk.
    wait_until("the disk to fill up", || {
        assert_eq!(puppet.tell("api 20000 1"), "0", "the program is not told");
        client.ask("status")["ledger"]["state"] == "failed"
    });
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "failed", "{stopped}");
    assert!(stopped["error"].as_str().is_some_and(|why| !why.is_empty()));
    let ledger = &stopped["ledger"];
    let count = |column: &str| ledger[column]["runtime-api"].as_u64().expect("a count");
    assert_eq!(count("reported"), count("written") + count("lost"));
    assert!(count("lost") > 0);
    let dir = only_prof_dir(&inside(&puppet, &disk));
    let prof = support::prof::Prof::open(&dir);
    assert_eq!(prof.api().len() as u64, count("written"));
    for slices in prof.host.get("aging.api_event.data").into_iter() {
        assert!(
            slices.values().all(|bytes| bytes.len() % 40 == 0),
            "torn records"
        );
    }
    assert!(dir.join("host/end_info.done").exists());
    assert_eq!(prof.ledger()["state"], "failed");
    assert_eq!(client.ask("quit")["outcome"], "success");
    // And the program goes on and can be captured elsewhere.
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn an_output_directory_removed_in_mid_capture_fails_the_stop_and_nothing_else() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 10 1"), "0");
    fs::remove_dir_all(home.output()).expect("removed");
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert_eq!(client.command(STOP), FAILED);
    assert_eq!(client.command(STOP), NOT_STARTED);
    client.quit();
    assert_serves(puppet.socket(), &home.output());
}
