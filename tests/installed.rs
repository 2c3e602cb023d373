//! `make install` and `make uninstall`, and what is installed.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use support::artifacts::{artifacts, root};
use support::home::Home;
use support::prefix::{Prefix, files_below};

/// Everything below the prefix.
const INSTALLED: [&str; 24] = [
    "bin/msprof",
    "include/msprof_agent.h",
    "lib/cmake/msprof_agent/msprof_agent-config-version.cmake",
    "lib/cmake/msprof_agent/msprof_agent-config.cmake",
    "lib/libmsprof_agent.a",
    "lib/libmsprof_agent.so",
    "lib/msprof-agent/cann-impl/libprofimpl.so",
    "lib/msprof-agent/cann/libprofapi.so",
    "lib/pkgconfig/msprof_agent-static.pc",
    "lib/pkgconfig/msprof_agent.pc",
    "share/bash-completion/completions/msprof",
    "share/doc/msprof-agent/LICENSE",
    "share/doc/msprof-agent/README.md",
    "share/doc/msprof-agent/docs/containers.md",
    "share/doc/msprof-agent/docs/export.md",
    "share/doc/msprof-agent/docs/json.md",
    "share/doc/msprof-agent/docs/troubleshooting.md",
    "share/doc/msprof-agent/examples/msprof_agent.py",
    "share/doc/msprof-agent/examples/own_ranges.c",
    "share/doc/msprof-agent/examples/own_ranges.cpp",
    "share/doc/msprof-agent/examples/own_ranges.py",
    "share/fish/vendor_completions.d/msprof.fish",
    "share/man/man1/msprof.1",
    "share/zsh/site-functions/_msprof",
];

#[test]
fn install_lays_everything_out_and_uninstall_takes_it_away() {
    let prefix = Prefix::new();
    assert_eq!(files_below(&prefix.path("")), INSTALLED);
    let meta = |name: &str| prefix.path(name).metadata().expect("there");
    for name in INSTALLED {
        let mode = meta(name).permissions().mode() & 0o7777;
        let runs = name.starts_with("bin/") || name.contains(".so");
        assert_eq!(mode, if runs { 0o755 } else { 0o644 }, "{name}");
    }
    // One file under three names: two files would be two agents in one process.
    let library = meta("lib/libmsprof_agent.so").ino();
    for link in ["cann/libprofapi.so", "cann-impl/libprofimpl.so"] {
        assert_eq!(meta(&format!("lib/msprof-agent/{link}")).ino(), library);
        let target = fs::read_link(prefix.path(&format!("lib/msprof-agent/{link}")));
        assert!(
            target.expect("a link").is_relative(),
            "the prefix can be moved"
        );
    }
    for name in INSTALLED
        .iter()
        .filter(|name| name.ends_with(".pc") || name.ends_with(".cmake"))
    {
        let text = fs::read_to_string(prefix.path(name)).expect("text");
        assert!(!text.contains("@VERSION@"), "{name}");
        let stage = prefix.stage().to_str().expect("UTF-8");
        assert!(!text.contains(stage), "{name} can be moved");
    }
    // Again over what is there, and a stranger's file stays.
    prefix.make("install");
    fs::write(prefix.path("lib/pkgconfig/other.pc"), "").expect("written");
    assert_eq!(files_below(&prefix.path("")).len(), INSTALLED.len() + 1);
    prefix.make("uninstall");
    assert_eq!(files_below(&prefix.path("")), ["lib/pkgconfig/other.pc"]);
    prefix.make("uninstall");
}

/// Where the documents lie.
const DOC: &str = "share/doc/msprof-agent";
/// What links of the documents lead to that is for who works on this: it stays in the repository.
const NOT_INSTALLED: [&str; 6] = [
    "benches/results",
    "benches/results/2026-12-01-x86_64-export.txt",
    "docs/decisions",
    "docs/decisions/7-device-channels.md",
    "docs/design.md",
    "docs/field-reports-tests.md",
];

/// Where the relative links of a document lead, without what is said of a place in it.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    let files = targets.filter_map(|target| target.split('#').next());
    files
        .filter(|file| !file.is_empty() && !file.contains("://"))
        .collect()
}

#[test]
fn what_the_installed_documents_link_to_is_installed_or_for_who_works_on_this() {
    let prefix = Prefix::new();
    let mut left: Vec<String> = Vec::new();
    let mut found = 0;
    let documents = INSTALLED.iter().filter(|name| name.ends_with(".md"));
    for name in documents {
        let document = prefix.path(name);
        let text = fs::read_to_string(&document).expect("text");
        let from = document.parent().expect("a directory");
        for link in links(&text) {
            match from.join(link).exists() {
                true => found += 1,
                // All that are left are links of README.md, which lies at the top here and there.
                false => left.push(link.to_owned()),
            }
        }
    }
    left.sort();
    left.dedup();
    assert_eq!(left, NOT_INSTALLED);
    assert!(found >= 4, "{found}");
    for link in NOT_INSTALLED {
        assert!(root().join(link).exists(), "{link}");
        assert!(!prefix.path(DOC).join(link).exists(), "{link}");
    }
}

/// Puts a link in the place of what is there, if anything is.
fn replace_by_link(path: &Path, to: &Path) {
    match fs::symlink_metadata(path).map(|found| found.is_dir()) {
        Ok(true) => fs::remove_dir_all(path).expect("removed"),
        Ok(false) => fs::remove_file(path).expect("removed"),
        Err(_) => fs::create_dir_all(path.parent().expect("a directory")).expect("made"),
    }
    symlink(to, path).expect("linked");
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_stays() {
    let (home, prefix) = (Home::new(), Prefix::new());
    let theirs = home.path().join("theirs");
    fs::write(&theirs, "theirs").expect("written");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o600)).expect("set");
    let assert_untouched = || {
        assert_eq!(fs::read(&theirs).expect("there"), b"theirs");
        let mode = theirs.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    };
    // To a file, to nothing, and to a directory, into which a file could be put.
    let nowhere = home.path().join("nowhere");
    let directory = home.path().join("directory");
    fs::create_dir(&directory).expect("made");
    for to in [&theirs, &nowhere, &directory] {
        for name in INSTALLED {
            replace_by_link(&prefix.path(name), to);
        }
        prefix.make("install");
        for name in INSTALLED {
            let path = prefix.path(name);
            assert_eq!(path.is_symlink(), name.contains("libprof"), "{name}");
            assert!(path.is_file(), "{name}");
        }
        assert_eq!(files_below(&prefix.path("")), INSTALLED);
        for name in INSTALLED {
            replace_by_link(&prefix.path(name), to);
        }
        prefix.make("uninstall");
        assert_eq!(files_below(&prefix.path("")), [] as [&str; 0]);
        assert_untouched();
        assert!(!nowhere.exists());
        assert_eq!(files_below(&directory), [] as [&str; 0]);
    }
}

#[test]
fn a_link_in_the_place_of_a_directory_of_ours_is_replaced_and_what_it_leads_to_stays() {
    let (home, prefix) = (Home::new(), Prefix::new());
    // The vendor's directory, of whose library ours has the name.
    let vendor = home.path().join("vendor");
    fs::create_dir(&vendor).expect("made");
    for dir in [
        "lib/msprof-agent",
        "lib/msprof-agent/cann",
        "lib/msprof-agent/cann-impl",
        "lib/cmake/msprof_agent",
        "share/doc/msprof-agent",
        "share/doc/msprof-agent/docs",
        "share/doc/msprof-agent/examples",
    ] {
        let below: Vec<&str> = INSTALLED
            .iter()
            .filter_map(|name| name.strip_prefix(dir)?.strip_prefix('/'))
            .collect();
        assert!(!below.is_empty(), "{dir}");
        for name in &below {
            let path = vendor.join(name);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, "theirs").expect("written");
        }
        let assert_untouched = || {
            assert_eq!(files_below(&vendor), below, "{dir}");
            for name in &below {
                assert_eq!(fs::read(vendor.join(name)).expect("there"), b"theirs");
            }
        };
        replace_by_link(&prefix.path(dir), &vendor);
        prefix.make("install");
        assert!(!prefix.path(dir).is_symlink(), "{dir}");
        assert_eq!(files_below(&prefix.path("")), INSTALLED);
        assert_untouched();
        replace_by_link(&prefix.path(dir), &vendor);
        prefix.make("uninstall");
        assert_eq!(files_below(&prefix.path("")), [] as [&str; 0]);
        assert_untouched();
        fs::remove_dir_all(&vendor).expect("removed");
        fs::create_dir(&vendor).expect("made");
    }
}

#[test]
fn a_directory_that_all_share_may_be_a_link_and_keeps_its_mode() {
    let (home, prefix) = (Home::new(), Prefix::new());
    prefix.make("uninstall");
    let lib64 = home.path().join("lib64");
    fs::create_dir(&lib64).expect("made");
    fs::set_permissions(&lib64, fs::Permissions::from_mode(0o2775)).expect("set");
    replace_by_link(&prefix.path("lib"), &lib64);
    prefix.make("install");
    assert!(prefix.path("lib").is_symlink());
    assert!(lib64.join("msprof-agent/cann/libprofapi.so").is_file());
    let mode = lib64.metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o2775);
    prefix.make("uninstall");
    assert_eq!(files_below(&lib64), [] as [&str; 0]);
}

#[test]
fn a_program_that_runs_keeps_its_file_and_there_is_a_whole_one_at_any_time() {
    let prefix = Prefix::new();
    let names = ["bin/msprof", "lib/libmsprof_agent.so"];
    let lengths = names.map(|name| prefix.path(name).metadata().expect("there").len());
    // As a running program holds it.
    let held = names.map(|name| fs::File::open(prefix.path(name)).expect("opens"));
    std::thread::scope(|scope| {
        let making = scope.spawn(|| prefix.make("install"));
        while !making.is_finished() {
            for (name, length) in names.iter().zip(lengths) {
                let meta = prefix.path(name).metadata();
                assert_eq!(meta.expect("always there").len(), length, "{name}");
            }
        }
    });
    for (name, held) in names.iter().zip(&held) {
        let (new, old) = (prefix.path(name).metadata(), held.metadata());
        let (new, old) = (new.expect("there"), old.expect("open"));
        assert_ne!(new.ino(), old.ino(), "{name}");
        assert_eq!((old.nlink(), old.len()), (0, new.len()), "{name}");
    }
}

#[test]
fn the_installed_msprof_uses_the_installed_library() {
    let (home, prefix) = (Home::new(), Prefix::new());
    let library = prefix.path("lib/libmsprof_agent.so").display().to_string();
    // By way of a link that lies elsewhere, too.
    let link = home.path().join("msprof");
    std::os::unix::fs::symlink(prefix.path("bin/msprof"), &link).expect("linked");
    for msprof in [prefix.path("bin/msprof"), link] {
        let finished = home.plain(&msprof).arg("--version").run();
        finished.expect_code(0);
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("msprof {version}\nlibmsprof_agent {version}, {library}");
        assert_eq!(finished.text().trim_end(), expected);
        let finished = home
            .plain(&msprof)
            .args([
                "--dynamic=on",
                "sh",
                "-c",
                "echo $LD_PRELOAD,$LD_LIBRARY_PATH",
            ])
            .run();
        finished.expect_code(0);
        let drop_in = prefix.path("lib/msprof-agent/cann").display().to_string();
        finished.line_with(&format!("{library},{drop_in}"));
    }
}

#[test]
fn a_library_tells_its_version_without_being_loaded() {
    let home = Home::new();
    let named = |library: &std::path::Path| {
        let option = format!("--agent-lib={}", library.display());
        let finished = home
            .plain(&artifacts().msprof)
            .args([option.as_str(), "--version"])
            .run();
        finished.expect_code(0);
        finished.text()
    };
    let own = env!("CARGO_PKG_VERSION");
    // The archive, which nobody could load, has the text as well.
    for library in [&artifacts().library, &artifacts().archive] {
        let told = named(library);
        assert!(told.contains(&format!("libmsprof_agent {own}, ")), "{told}");
        assert!(!told.contains("one release"), "{told}");
    }
    // Of another release: the same file with another number of as many characters.
    let bytes = fs::read(&artifacts().library).expect("readable");
    let (before, after) = (
        format!("version {own}\0"),
        own.replace(|c: char| c.is_ascii_digit(), "7"),
    );
    let at = bytes
        .windows(before.len())
        .position(|window| window == before.as_bytes());
    let at = at.expect("the version stands in the file") + "version ".len();
    let mut other = bytes;
    other[at..at + own.len()].copy_from_slice(after.as_bytes());
    let path = home.path().join("libmsprof_agent.so");
    fs::write(&path, other).expect("written");
    let told = named(&path);
    assert!(
        told.contains(&format!("of version {after}, this msprof of {own}")),
        "{told}"
    );
}
