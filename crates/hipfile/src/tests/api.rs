//! The safe way in.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastpath_gpu::{Gpu as _, Transfer};

use super::fixture::{Fixture, MIB, pattern};
use crate::{Buffer, DeviceMemory, Driver, Error, Operation, Stream};

fn memory(fixture: &Fixture, length: usize) -> DeviceMemory {
    let address = fixture.mock.allocate(length, 0);
    let address = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap();
    // SAFETY: the mock's memory is never freed.
    unsafe { DeviceMemory::from_raw(address, length, None) }
}

fn peek(fixture: &Fixture, memory: &DeviceMemory) -> Vec<u8> {
    fixture.mock.peek(memory.address(), memory.len())
}

#[test]
fn values_own_what_is_registered() {
    let fixture = Fixture::new();
    let bytes = pattern(MIB, 1);
    drop(fixture.file("a", 0, &bytes));
    fixture.runtime.driver_close().unwrap();
    let mut memory = memory(&fixture, MIB);
    {
        let driver = Driver::on(Arc::clone(&fixture.runtime)).unwrap();
        let file = driver.register(fixture.open("a", 0)).unwrap();
        let mut buffer = Buffer::new(&driver, &mut memory).unwrap();
        drop(driver);
        assert_eq!(fixture.runtime.registered(), (1, 1));
        assert_eq!(file.read_at(&mut buffer, 0..MIB, 0), Ok(MIB));
        assert_eq!(file.write_at(&buffer, 4096..8192, 0), Ok(4096));
        let backwards = std::ops::Range { start: 2, end: 1 };
        assert_eq!(file.read_at(&mut buffer, backwards, 0).unwrap_err().code(), 5022);
        assert_eq!(file.read_at(&mut buffer, 0..1, u64::MAX).unwrap_err().code(), 5022);
        assert_eq!(file.reasons(), []);
    }
    assert_eq!((fixture.runtime.registered(), fixture.runtime.use_count()), ((0, 0), 0));
    assert!(peek(&fixture, &memory) == bytes);
    assert!(fixture.content("a")[..4096] == bytes[4096..8192]);
}

/// Memory is found by its address in any runtime, and its allocation may be longer than the buffer.
#[test]
fn nothing_outside_a_buffer_and_nothing_of_another_runtime_is_touched() {
    let fixture = Fixture::new();
    drop(fixture.file("a", 0, &pattern(MIB, 1)));
    fixture.runtime.driver_close().unwrap();
    let mut all = memory(&fixture, 8192);
    let address = NonNull::new(std::ptr::with_exposed_provenance_mut(all.address())).unwrap();
    // SAFETY: half of the mock's memory, which nothing else uses here.
    let mut half = unsafe { DeviceMemory::from_raw(address, 4096, None) };
    let driver = Driver::on(Arc::clone(&fixture.runtime)).unwrap();
    let file = driver.register(fixture.open("a", 0)).unwrap();
    {
        let mut buffer = Buffer::new(&driver, &mut half).unwrap();
        // As if somebody else had closed the driver.
        fixture.runtime.driver_close().unwrap();
        let file = driver.register(fixture.open("a", 0)).unwrap();
        let error = file.read_at(&mut buffer, 0..8192, 0).unwrap_err();
        assert_eq!(error, Error::BeyondBuffer { size: 8192, offset: 0, length: 4096 });
        assert_eq!(file.write_at(&buffer, 4096..4097, 0).unwrap_err().code(), 5022);
    }
    let other = Fixture::new();
    let elsewhere = Driver::on(Arc::clone(&other.runtime)).unwrap();
    let wrong = Error::Argument { what: "the file and the buffer belong to different runtimes" };
    let mut buffer = Buffer::new(&driver, &mut all).unwrap();
    let stranger = elsewhere.register(fixture.open("a", 0)).unwrap();
    assert_eq!(stranger.read_at(&mut buffer, 0..1, 0), Err(wrong.clone()));
    let operation = Operation::read(&file, buffer.whole(), 0).unwrap();
    assert_eq!(elsewhere.run(&[operation]).unwrap_err(), wrong);
    let operation = Operation::read(&stranger, buffer.whole(), 0).unwrap();
    assert_eq!(driver.run(&[operation]).unwrap_err(), wrong);
}

#[test]
fn batches_and_streams_give_a_result_for_each_operation() {
    let fixture = Fixture::new();
    let bytes = pattern(MIB, 1);
    drop(fixture.file("a", 0, &bytes));
    fixture.runtime.driver_close().unwrap();
    let driver = Driver::on(Arc::clone(&fixture.runtime)).unwrap();
    let file = driver.register(fixture.open("a", 0)).unwrap();
    let mut memory = memory(&fixture, MIB);
    let mut buffer = Buffer::new(&driver, &mut memory).unwrap();
    let halves = |buffer: &mut Buffer<'_>| {
        let (low, high) = buffer.whole().split_at(MIB / 2);
        assert_eq!((low.len(), high.len()), (MIB / 2, MIB / 2));
        // The halves change places.
        let low = Operation::read(&file, low, MIB as u64 / 2).unwrap();
        let high = Operation::read(&file, high, 0).unwrap();
        driver.run(&[low, high]).unwrap()
    };
    assert_eq!(halves(&mut buffer), [Ok(MIB / 2), Ok(MIB / 2)]);
    // SAFETY: the mock's streams stay.
    let stream = unsafe { Stream::from_raw(&driver, fixture.mock.client_stream(0)) }.unwrap();
    let (low, high) = buffer.whole().split_at(4096);
    let operations = [
        Operation::write(&file, low, MIB as u64).unwrap(),
        Operation::read(&file, high.split_at(4096).0, MIB as u64).unwrap(),
    ];
    let mut meanwhile = false;
    assert_eq!(stream.run(&operations, || meanwhile = true), Ok(vec![Ok(4096), Ok(4096)]));
    assert!(meanwhile);
    *fixture.mock.script.lock().unwrap() =
        Some(Box::new(|_| Some(Transfer { error: 999, status: -5, copied: 0, errno: 0 })));
    let failed = driver.run(&[Operation::read(&file, buffer.whole(), 0).unwrap()]).unwrap();
    assert_eq!(failed, [Err(Error::Reported(-5))]);
    drop(buffer);
    let found = peek(&fixture, &memory);
    assert!(found[8192..MIB / 2] == bytes[MIB / 2 + 8192..] && found[..4096] == found[4096..8192]);
    assert_eq!(fixture.mock.copies.load(Ordering::Relaxed), 0);
}

#[test]
fn allocated_memory_takes_and_gives_bytes_and_is_freed() {
    let fixture = Fixture::new();
    let driver = Driver::on(Arc::clone(&fixture.runtime)).unwrap();
    let mut memory = DeviceMemory::allocate(&driver, 8192).unwrap();
    let address = memory.address();
    let mut buffer = Buffer::new(&driver, &mut memory).unwrap();
    let bytes = pattern(4000, 3);
    buffer.put(96, &bytes).unwrap();
    let mut back = vec![0; 4000];
    buffer.get(96, &mut back).unwrap();
    assert!(back == bytes);
    let beyond = Error::BeyondBuffer { size: 4000, offset: 4193, length: 8192 };
    assert_eq!(buffer.put(4193, &bytes), Err(beyond.clone()));
    assert_eq!(buffer.get(4193, &mut back), Err(beyond));
    drop(buffer);
    drop(memory);
    assert!(fixture.mock.allocation(address).is_err());
}
