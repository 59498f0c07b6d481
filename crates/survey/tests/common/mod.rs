//! Tools that tests run.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod repository;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use fastpath_survey::trust::Fingerprint;

/// Whether a tool is installed.
pub(crate) fn have(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
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
