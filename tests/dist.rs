//! What `make dist` packs.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::{artifacts, root};
use support::prefix::{Prefix, assert_success, files_below, run_tool};

/// Packs the artifacts, with a short text for the archive, which would take the longest; the packages.
fn pack(dir: &Path, arch: &str) -> Result<[PathBuf; 2], String> {
    let built = dir.join("built");
    std::fs::create_dir_all(&built).expect("made");
    for file in [&artifacts().library, &artifacts().msprof] {
        std::fs::copy(file, built.join(file.file_name().expect("a name"))).expect("copied");
    }
    std::fs::write(built.join("libmsprof_agent.a"), "an archive\n").expect("written");
    let out = dir.join("out");
    let output = Command::new("sh")
        .arg("packaging/dist.sh")
        .args([built.as_os_str(), arch.as_ref(), out.as_os_str()])
        .env_remove("MAKEFLAGS")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .current_dir(root())
        .output()
        .expect("sh");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let version = env!("CARGO_PKG_VERSION");
    let deb_arch = if arch == "aarch64" { "arm64" } else { "amd64" };
    let tarball = format!("msprof-agent-{version}-linux-{arch}.tar.gz");
    Ok([tarball, format!("msprof-agent_{version}_{deb_arch}.deb")].map(|name| out.join(name)))
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn the_packages_hold_what_is_installed_and_are_the_same_each_time() {
    let (first, second) = (scratch(), scratch());
    let arch = std::env::consts::ARCH;
    let packages = pack(first.path(), arch).expect("packed");
    let again = pack(second.path(), arch).expect("packed");
    for (one, other) in packages.iter().zip(&again) {
        if one.exists() {
            let same = std::fs::read(one).expect("read") == std::fs::read(other).expect("read");
            assert!(same, "{}", one.display());
        }
    }
    let [tarball, deb] = packages;
    let unpacked = scratch();
    let output = Command::new("tar")
        .arg("-xzf")
        .arg(&tarball)
        .arg("-C")
        .arg(unpacked.path())
        .output();
    assert_success(&output.expect("tar"), "tar");
    let installed = files_below(&Prefix::new().path(""));
    let name = tarball
        .file_name()
        .expect("a name")
        .to_str()
        .expect("UTF-8");
    let top = unpacked.path().join(name.trim_end_matches(".tar.gz"));
    assert_eq!(files_below(&top), installed);

    let unpacked = scratch();
    let Some(output) = run_tool("dpkg-deb", |command| {
        command.arg("-x").arg(&deb).arg(unpacked.path());
    }) else {
        return;
    };
    assert_success(&output, "dpkg-deb -x");
    // Where Debian has other names for the same things.
    let mut expected: Vec<String> = installed
        .into_iter()
        .map(|name| match name.as_str() {
            "share/doc/msprof-agent/LICENSE" => "share/doc/msprof-agent/copyright".to_owned(),
            "share/man/man1/msprof.1" => format!("{name}.gz"),
            "share/zsh/site-functions/_msprof" => "share/zsh/vendor-completions/_msprof".to_owned(),
            _ => name,
        })
        .collect();
    expected.sort();
    assert_eq!(files_below(&unpacked.path().join("usr")), expected);
    let link = unpacked
        .path()
        .join("usr/lib/msprof-agent/cann/libprofapi.so");
    let same = std::fs::read(link).expect("leads to the library");
    assert!(same == std::fs::read(&artifacts().library).expect("read"));

    let field = |name: &str| {
        let output = Command::new("dpkg-deb")
            .arg("-f")
            .arg(&deb)
            .arg(name)
            .output();
        let output = output.expect("dpkg-deb is there");
        String::from_utf8(output.stdout)
            .expect("UTF-8")
            .trim()
            .to_owned()
    };
    assert_eq!(field("Version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        field("Architecture"),
        if arch == "aarch64" { "arm64" } else { "amd64" }
    );
    assert!(
        field("Depends").starts_with("libc6 (>= 2."),
        "{}",
        field("Depends")
    );
    let size: u64 = field("Installed-Size").parse().expect("a number");
    let library = artifacts().library.metadata().expect("there").len() / 1024;
    assert!(size > library && size < library * 10, "{size} KiB");
}

#[test]
fn files_of_another_architecture_are_not_packed() {
    let dir = scratch();
    let other = if std::env::consts::ARCH == "aarch64" {
        "x86_64"
    } else {
        "aarch64"
    };
    let error = pack(dir.path(), other).expect_err("refused");
    assert!(
        error.contains(&format!("is no file for {other}")),
        "{error}"
    );
    assert!(!dir.path().join("out").exists() || files_below(&dir.path().join("out")).is_empty());
    let error = pack(dir.path(), "riscv").expect_err("refused");
    assert!(error.contains("ARCH is x86_64 or aarch64"), "{error}");
}
