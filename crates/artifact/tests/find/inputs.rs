//! Inputs that are more than bytes in memory.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use fastpath_artifact::{Finder, Limits};

use crate::make::{NO, Tar, YES, config, deb, gzip, noise};
use crate::tools::show;

/// A file that counts, gives little at a time, and fails from some place on.
struct Input<'a> {
    bytes: Cursor<&'a [u8]>,
    most: usize,
    fails_from: u64,
    seeks: &'a Cell<u32>,
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.bytes.position() >= self.fails_from {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset"));
        }
        let most = buf.len().min(self.most);
        self.bytes.read(&mut buf[..most])
    }
}

impl Seek for Input<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.seeks.set(self.seeks.get() + 1);
        self.bytes.seek(to)
    }
}

fn find(bytes: &[u8], most: usize, fails_from: u64) -> (Vec<String>, Result<u64, String>, u32) {
    let seeks = Cell::new(0);
    let mut input = Input { bytes: Cursor::new(bytes), most, fails_from, seeks: &seeks };
    let mut found = Vec::new();
    let result = Finder::new(Limits::default(), false)
        .find(&mut input, "x", &mut |kernel| found.push(kernel))
        .map(|summary| summary.bytes_read)
        .map_err(|error| error.to_string());
    (show(&found), result, seeks.get())
}

#[test]
fn large_members_of_a_plain_archive_are_left_out_without_reading() {
    let tar = Tar::default()
        .add("boot/config-6.1.0-1", &config("6.1.0", YES))
        .add("usr/lib/noise", &noise(5_000_000, 1))
        .add("boot/config-6.1.0-2", &config("6.1.0", NO))
        .end();
    let (found, read, seeks) = find(&tar, usize::MAX, u64::MAX);
    assert_eq!(found, ["boot/config-6.1.0-1 6.1.0-1 y", "boot/config-6.1.0-2 6.1.0-2 not set"]);
    assert!(read.unwrap() < 500_000);
    // To learn the length, to go back, and over the noise.
    assert_eq!(seeks, 3);
}

#[test]
fn an_archive_cut_in_a_member_that_is_left_out_is_cut() {
    let tar = Tar::default().add("usr/lib/noise", &noise(5_000_000, 1)).end();
    let (_, result, _) = find(&tar[..4_000_000], usize::MAX, u64::MAX);
    assert_eq!(result.unwrap_err(), "x: tar ends at offset 4000000, before its end");
}

#[test]
fn an_input_may_give_one_byte_at_a_time() {
    let data = Tar::default().add("./boot/config-6.1.0", &config("6.1.0", YES)).end();
    let package = deb("linux-image-6.1.0", &data);
    let (found, ..) = find(&package, 1, u64::MAX);
    assert_eq!(found, ["data.tar.gz!boot/config-6.1.0 6.1.0 y"]);
}

#[test]
fn an_input_that_fails_is_an_error_of_its_own() {
    let data = Tar::default()
        .add("./usr/lib/noise", &noise(400_000, 1))
        .add("./boot/config-6.1.0", &config("6.1.0", YES))
        .end();
    for bytes in [data.clone(), gzip(&data), deb("linux-image-6.1.0", &data)] {
        for from in [0, 70_000, 200_000] {
            let (found, result, _) = find(&bytes, 10_000, from);
            assert!(found.is_empty());
            assert_eq!(result.unwrap_err(), "x: connection reset", "from {from}");
        }
    }
}

#[test]
fn a_stream_gives_what_a_file_gives() {
    let data = Tar::default().add("./boot/config-6.1.0", &config("6.1.0", YES)).end();
    let package = deb("linux-image-6.1.0", &data);
    let mut found = Vec::new();
    let mut finder = Finder::new(Limits::default(), false);
    let summary = finder.find_in_stream(&mut &package[..], "-", &mut |kernel| found.push(kernel));
    assert_eq!(show(&found), ["data.tar.gz!boot/config-6.1.0 6.1.0 y"]);
    assert!(summary.unwrap().errors.is_empty());
}
