//! File systems that fail, and what is left then.

use super::*;
use crate::ledger::Ledger;
use crate::profdir::writer::RESERVE_FILE;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

/// A small tmpfs, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, with a line that says so, where mounting is not allowed.
    fn mount(kilobytes: u32) -> Option<SmallDisk> {
        let temp = tempfile::tempdir().expect("temporary directory");
        let target = c_path(temp.path());
        let options = CString::new(format!("size={kilobytes}k")).expect("no NUL");
        // SAFETY: all strings are NUL-terminated and outlive the call.
        let result = unsafe {
            libc::mount(
                c"none".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if result != 0 {
            let error = std::io::Error::last_os_error();
            crate::skip::skipped(format_args!("a small tmpfs cannot be mounted ({error})"));
            return None;
        }
        Some(SmallDisk(temp))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // SAFETY: the string is NUL-terminated and outlives the call.
        unsafe { libc::umount2(c_path(self.0.path()).as_ptr(), libc::MNT_DETACH) };
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

#[test]
fn a_full_disk_leaves_whole_records_an_end_and_a_ledger() {
    let Some(disk) = SmallDisk::mount(24 * 1024) else {
        return;
    };
    let mut dir = create(disk.path());
    dir.write_ledger(&Ledger::default()).expect("written");
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let other = dir.family(Place::Host, "unaging.compact.task_track", Some(64));
    dir.append(other, &[0; 64], &TraceCounts::default())
        .expect("appended");
    let (bytes, counts) = api_batch(0, 1_637);
    let mut written = 0;
    let error = loop {
        match dir.append(family, &bytes, &counts) {
            Ok(()) => written += counts.total(),
            Err(error) => break error,
        }
        assert!(written < 1_000_000, "the disk is full some time");
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{error}");
    assert_eq!(error.kept().counts.total(), error.kept().records);
    assert!(error.kept().records > 0, "a part of the batch got through");
    written += error.kept().records;
    // A family without a file yet leaves none, not even an empty one.
    let third = dir.family(Place::Host, "aging.compact.memcpy_info", Some(64));
    let big = vec![0; 64 * 4096];
    let error = dir
        .append(third, &big, &TraceCounts::default())
        .expect_err("still full");
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{error}");

    // In mid capture the account leaves the room that is kept for the end, and what was there stays.
    let large = Ledger {
        notes: vec!["x".repeat(512 * 1024)],
        ..Ledger::default()
    };
    assert!(dir.renew_ledger(&large).is_err());
    assert!(dir.path().join(RESERVE_FILE).exists());
    let kept = std::fs::read_to_string(dir.path().join(LEDGER_FILE)).expect("there");
    assert!(kept.len() < 4096 && kept.ends_with("}\n"), "{kept}");

    dir.finish(anchor(9)).expect("end_info has its reserve");
    let ledger = Ledger {
        notes: vec![error.to_string(); 20],
        ..Ledger::default()
    };
    dir.write_ledger(&ledger)
        .expect("the ledger has its reserve");
    let mut records = 0;
    for (file, length) in slices(dir.path()) {
        assert!(length > 0, "{file} is empty");
        let size = if file.contains("api_event") { 40 } else { 64 };
        assert_eq!(length % size, 0, "{file} is torn");
        if size == 40 {
            records += length / 40;
        }
    }
    assert_eq!(records, written, "what was said to be kept is there");
    assert!(dir.path().join("host/end_info").exists());
}

#[test]
fn a_disk_with_little_space_is_refused_and_nothing_is_left() {
    let Some(disk) = SmallDisk::mount(8 * 1024) else {
        return;
    };
    let error = ProfDir::create(setup(&disk.path().join("a/b"))).expect_err("too little");
    assert!(matches!(error, ProfDirError::LittleSpace { .. }), "{error}");
    assert!(error.to_string().contains("a/b"), "{error}");
    assert_eq!(std::fs::read_dir(disk.path()).expect("readable").count(), 0);
}

#[test]
fn a_directory_removed_in_mid_capture_is_an_error_at_the_next_append() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 10);
    dir.append(family, &bytes, &counts).expect("appended");
    std::fs::remove_dir_all(dir.path()).expect("removed");
    for _ in 0..2 {
        let error = dir.append(family, &bytes, &counts).expect_err("it is gone");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
        assert_eq!(error.kept(), Kept::default());
        assert!(error.to_string().contains("removed"), "{error}");
    }
    assert!(dir.write_ledger(&Ledger::default()).is_err());
    assert!(dir.finish(anchor(9)).is_err());
    assert_eq!(std::fs::read_dir(temp.path()).expect("readable").count(), 0);
}

#[test]
fn a_parent_that_is_a_file_or_cannot_be_written_is_refused_with_the_reason() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let file = temp.path().join("file");
    std::fs::write(&file, "x").expect("written");
    for parent in [file.clone(), file.join("below")] {
        let error = ProfDir::create(setup(&parent)).expect_err("not a directory");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR), "{error}");
        assert!(error.to_string().contains("file"), "{error}");
    }
    // Root passes every permission, but not /proc's refusal.
    let error = ProfDir::create(setup(Path::new("/proc/nothing/here"))).expect_err("refused");
    assert!(error.io().is_some(), "{error}");
    assert!(error.to_string().contains("/proc/nothing"), "{error}");
    assert_eq!(std::fs::read_dir(temp.path()).expect("readable").count(), 1);
}

#[test]
fn a_read_only_file_system_is_refused_with_the_reason() {
    let Some(disk) = SmallDisk::mount(24 * 1024) else {
        return;
    };
    let target = c_path(disk.path());
    // SAFETY: all strings are NUL-terminated and outlive the call.
    let result = unsafe {
        libc::mount(
            std::ptr::null(),
            target.as_ptr(),
            std::ptr::null(),
            libc::MS_REMOUNT | libc::MS_RDONLY,
            std::ptr::null(),
        )
    };
    assert_eq!(result, 0, "remounted read-only");
    let error = ProfDir::create(setup(disk.path())).expect_err("read-only");
    assert_eq!(error.raw_os_error(), Some(libc::EROFS), "{error}");
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[test]
fn a_slice_replaced_by_a_link_is_not_written_through() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let victim = temp.path().join("victim");
    std::fs::write(&victim, "theirs").expect("written");
    let mut dir = create(temp.path());
    let planted = dir.path().join("host/data/aging.api_event.data.slice_0");
    std::os::unix::fs::symlink(&victim, planted).expect("link");
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 10);
    let error = dir
        .append(family, &bytes, &counts)
        .expect_err("something stands there");
    assert_eq!(error.raw_os_error(), Some(libc::EEXIST), "{error}");
    assert_eq!(std::fs::read(victim).expect("readable"), b"theirs");
}

#[test]
fn a_device_that_cannot_be_added_leaves_the_directory_as_it_was() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    std::fs::create_dir(dir.path().join("device_0")).expect("in the way");
    std::fs::write(dir.path().join("device_0/x"), "x").expect("in the way");
    assert!(dir.add_device(0, "{}", anchor(1), None).is_err());
    assert!(!dir.path().join(".profiler").exists());
    std::fs::remove_dir_all(dir.path().join("device_0")).expect("removed");
    dir.add_device(0, "{}", anchor(1), None)
        .expect("the way is free");
    assert!(matches!(
        dir.add_device(1, "[]", anchor(1), None),
        Err(ProfDirError::Sample { .. })
    ));
}

/// Set for a process that plays a program without standard streams.
const CHILD: &str = "PROFDIR_TEST_WITHOUT_STREAMS";

#[test]
fn files_never_become_the_standard_streams_of_a_program_that_closed_them() {
    let Some(parent) = std::env::var_os(CHILD) else {
        // Descriptors belong to the whole process: not one that runs other tests.
        let temp = tempfile::tempdir().expect("temporary directory");
        let exe = std::env::current_exe().expect("path of the test program");
        let name = "profdir::tests::faults::files_never_become_the_standard_streams_of_a_program_that_closed_them";
        let status = std::process::Command::new(exe)
            .args(["--exact", name, "--test-threads=1"])
            .env(CHILD, temp.path())
            .stdout(std::process::Stdio::null())
            .status()
            .expect("child runs");
        assert!(status.success(), "{status}");
        assert_eq!(
            std::fs::read_dir(temp.path()).expect("readable").count(),
            1,
            "it did its part"
        );
        return;
    };
    let parent = PathBuf::from(parent);
    for fd in 0..3 {
        // SAFETY: nothing in this process uses its standard streams from here on.
        unsafe { libc::close(fd) };
    }
    let mut dir = create(&parent);
    dir.add_device(0, "{}", anchor(0), None)
        .expect("device is added");
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 3);
    dir.append(family, &bytes, &counts).expect("appended");
    let mut ours = 0;
    for fd in 0..200 {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        if !target.is_ok_and(|target| target.starts_with(&parent)) {
            continue;
        }
        // SAFETY: asks for flags of a descriptor by number, changes nothing.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        if fd < 3 || flags & libc::FD_CLOEXEC == 0 {
            std::process::exit(1);
        }
        ours += 1;
    }
    std::process::exit(if ours == 6 { 0 } else { 2 });
}

/// Runs `act` with the file permissions of a user without any; `None`, with a line that says so, where
/// that is not allowed. Only the calling thread changes its identity for file access.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    const NOBODY: u32 = 65_534;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: changes this thread's identity only, and the thread ends right after.
            let now = unsafe {
                libc::setfsuid(NOBODY);
                libc::setfsuid(NOBODY)
            };
            if now as u32 != NOBODY {
                crate::skip::skipped(format_args!("this user cannot take another one's place"));
                return None;
            }
            Some(act())
        });
        thread.join().expect("the thread ends")
    })
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode is set");
}

#[test]
fn a_parent_without_write_permission_is_refused_with_the_reason() {
    let temp = tempfile::tempdir().expect("temporary directory");
    set_mode(temp.path(), 0o555);
    let error = as_nobody(|| ProfDir::create(setup(temp.path())).expect_err("not ours"));
    let Some(error) = error else { return };
    assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{error}");
    assert!(error.to_string().contains("write permission"), "{error}");
    assert_eq!(std::fs::read_dir(temp.path()).expect("readable").count(), 0);
}

#[test]
fn a_directory_made_unwritable_in_mid_capture_is_an_error_at_the_next_new_file() {
    let temp = tempfile::tempdir().expect("temporary directory");
    set_mode(temp.path(), 0o1777);
    as_nobody(|| {
        let mut dir = create(temp.path());
        let first = dir.family(Place::Host, "aging.api_event.data", Some(40));
        let second = dir.family(Place::Host, "unaging.api_event.data", Some(40));
        let (bytes, counts) = api_batch(0, 10);
        dir.append(first, &bytes, &counts).expect("appended");
        set_mode(&dir.path().join("host/data"), 0o500);
        dir.append(first, &bytes, &counts)
            .expect("the open slice goes on");
        let error = dir
            .append(second, &bytes, &counts)
            .expect_err("no new file");
        assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{error}");
        assert!(
            dir.finish(anchor(9)).is_err(),
            "the .done files are missing"
        );
        assert!(
            dir.path().join("host/end_info").exists(),
            "the rest is there"
        );
        set_mode(&dir.path().join("host/data"), 0o750);
        dir.finish(anchor(9))
            .expect("what was missing is made up for");
        assert_eq!(check::check(dir.path()).len(), 1, "the type has no name");
    });
}

/// What a program does that closes all descriptors it does not know and then opens files of its own: each of
/// ours below `root` now stands for `theirs`.
fn take_descriptors(root: &Path, theirs: &std::fs::File) -> usize {
    use std::os::fd::AsRawFd;
    let ours = |number: &i32| {
        std::fs::read_link(format!("/proc/self/fd/{number}"))
            .is_ok_and(|target| target.starts_with(root))
    };
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(ours)
        .collect();
    for &number in &numbers {
        // SAFETY: numbers of this test's own files below its own directory.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
    }
    numbers.len()
}

#[test]
fn a_program_that_puts_its_files_in_place_of_ours_keeps_them_and_the_capture_goes_on() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let elsewhere = tempfile::tempdir().expect("temporary directory");
    let theirs = elsewhere.path().join("theirs");
    let file = std::fs::File::create(&theirs).expect("create");
    let mut dir = create(temp.path());
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 100);
    dir.append(family, &bytes, &counts).expect("appended");
    let root = dir.path().to_owned();
    assert!(take_descriptors(&root, &file) >= 2, "directory and slice");
    let (more, counts) = api_batch(100, 50);
    dir.append(family, &more, &counts).expect("appended");
    dir.write_ledger(&Ledger::default()).expect("written");
    dir.finish(anchor(9)).expect("finished");
    drop(dir);
    assert_eq!(std::fs::read(&theirs).expect("theirs"), b"");
    let slice = root.join("host/data/aging.api_event.data.slice_0");
    assert_eq!(std::fs::read(slice).expect("slice"), [bytes, more].concat());
    assert!(root.join("host/end_info.done").exists());
    // Still open: not closed by us.
    file.sync_all().expect("open");
    use std::os::unix::fs::FileExt;
    file.write_all_at(b"theirs", 0).expect("open");
}
