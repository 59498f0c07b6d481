//! Tools that tests run.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod pacman;
pub(crate) mod repository;
pub(crate) mod rpm;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastpath_survey::trust::Fingerprint;

/// Whether a tool is installed.
pub(crate) fn have(tool: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()))
}

/// Whether all of these are installed; says so if not.
pub(crate) fn have_all(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| !have(tool));
    if let Some(tool) = missing {
        skipped(&format!("{tool} is not installed"));
    }
    missing.is_none()
}

/// What a program says.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// So many bytes that do not compress.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    noise.take(size).collect()
}

/// Says that a test did nothing, and why.
#[allow(clippy::print_stderr, reason = "a test that is not run says so")]
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped, because {reason}");
}

/// A `gpg` with keys of its own.
pub(crate) struct Gpg {
    home: tempfile::TempDir,
}

impl Gpg {
    pub(crate) fn new() -> Self {
        // Sockets of the agent need a short path.
        let home = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap();
        Self { home }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<u8> {
        self.run_with(arguments, b"")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("gpg")
            .env("GNUPGHOME", self.home.path())
            .args(["--batch", "--yes", "--quiet", "--no-tty", "--pinentry-mode", "loopback"])
            .args(["--passphrase", "", "--trust-model", "always"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("gpg");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "gpg {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Makes a key.
    pub(crate) fn key(&self, user: &str, kind: &str, usage: &str, life: &str) -> Fingerprint {
        self.key_with(&[], user, kind, usage, life)
    }

    pub(crate) fn key_with(
        &self,
        options: &[&str],
        user: &str,
        kind: &str,
        usage: &str,
        life: &str,
    ) -> Fingerprint {
        self.run(&[options, &["--quick-generate-key", user, kind, usage, life]].concat());
        let list = self.run(&["--list-keys", "--with-colons", user]);
        let list = String::from_utf8(list).unwrap();
        let print = list.lines().find(|line| line.starts_with("fpr:")).unwrap();
        print.split(':').nth(9).unwrap().parse().unwrap()
    }

    /// Writes public keys to a file.
    pub(crate) fn export(&self, file: &Path, keys: &[&str]) {
        let bytes = self.run(&[&["--export"], keys].concat());
        std::fs::write(file, bytes).unwrap();
    }

    /// Signs a file; the signature stands beside it.
    pub(crate) fn sign(&self, file: &Path, key: &Fingerprint) -> PathBuf {
        let signature = PathBuf::from(format!("{}.asc", file.display()));
        let (to, of) = (signature.to_str().unwrap(), file.to_str().unwrap());
        self.run(&["-u", key.as_str(), "--armor", "--detach-sign", "--output", to, of]);
        signature
    }

    /// Signs an rpm package in place.
    pub(crate) fn sign_package(&self, file: &Path, key: &Fingerprint) {
        let mut command = Command::new("rpmsign");
        command.env("GNUPGHOME", self.home.path());
        command.args(["--define", &format!("_gpg_name {key}"), "--define", "__gpg /usr/bin/gpg"]);
        run(command.arg("--resign").arg(file));
    }

    /// Revokes a key with the certificate that gpg made along with it.
    pub(crate) fn revoke(&self, key: &Fingerprint) {
        let file = self.home.path().join(format!("openpgp-revocs.d/{key}.rev"));
        let text = std::fs::read_to_string(file).unwrap();
        // It is made harmless by a colon.
        let armor = text.replace(":-----BEGIN", "-----BEGIN");
        let start = armor.find("-----BEGIN").unwrap();
        self.run_with(&["--import"], &armor.as_bytes()[start..]);
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf")
            .env("GNUPGHOME", self.home.path())
            .args(["--kill", "all"])
            .output();
    }
}
