//! Properties and parameters.
#![allow(unsafe_code)]

use fastpath_gpu::{Direction, MemoryKind, RawStream};

use super::fixture::Fixture;
use crate::choose::Reason;
use crate::raw::{Entry, Late};

#[test]
fn spec_10_04_properties_and_parameters_are_real() {
    let fixture = Fixture::new();
    let runtime = &fixture.runtime;
    let properties = runtime.properties();
    assert_eq!((properties.max_batch, properties.features), (128, 0b1110));
    assert_eq!((properties.status_flags, properties.control_flags), (1 << 4 | 1 << 11, 1 << 1));
    assert_eq!(properties.max_direct_io, 0x7fff_f000 / 1024);
    runtime.set_max_direct_io(1024).unwrap();
    runtime.set_poll_mode(true, 8).unwrap();
    let properties = runtime.properties();
    assert_eq!((properties.max_direct_io, properties.poll_threshold), (1024, 8));
    assert_eq!(properties.control_flags, 0b11);
    for number in 0..12 {
        // The level of the statistics, one buffer's cache and a batch's timeout are what they are.
        let value = match number {
            0 => 1,
            7 => 1024,
            11 => 0,
            _ => 7,
        };
        runtime.set_size_parameter(number, value).unwrap();
        assert_eq!(runtime.size_parameter(number), Ok(value));
        for value in [true, false] {
            runtime.set_boolean_parameter(number, value).unwrap();
            assert_eq!(runtime.boolean_parameter(number), Ok(value));
        }
    }
    assert_eq!(runtime.set_max_pinned(0).unwrap_err().code(), 5003);
    assert_eq!(runtime.size_parameter(12).unwrap_err().code(), 5022);
    assert_eq!(runtime.boolean_parameter(12).unwrap_err().code(), 5022);
    assert_eq!(runtime.string_parameter(3).unwrap_err().code(), 5022);
    assert_eq!(runtime.string_parameter(0).unwrap(), "warn");
    runtime.set_string_parameter(0, "DEBUG").unwrap();
    assert_eq!(runtime.string_parameter(0).unwrap(), "debug");
    assert_eq!(runtime.set_string_parameter(0, "loud").unwrap_err().code(), 5022);
    runtime.set_string_parameter(2, "/tmp").unwrap();
    assert_eq!(runtime.string_parameter(2).unwrap(), "/tmp");
}

#[test]
fn a_value_that_cannot_be_kept_to_is_refused() {
    let fixture = Fixture::new();
    let runtime = &fixture.runtime;
    let refused =
        [(0, 0), (0, 2), (1, 0), (2, 0), (2, 33), (7, 0), (7, 4), (9, 0), (9, 129), (11, 5)];
    for (number, value) in refused {
        let before = runtime.size_parameter(number);
        let error = runtime.set_size_parameter(number, value).unwrap_err();
        assert_eq!(error.code(), 5003, "{number} {value}");
        assert_eq!(runtime.size_parameter(number), before);
    }
    let error = runtime.set_size_parameter(9, 129).unwrap_err().to_string();
    assert_eq!(error, "the size of a batch is 129; expected 1 to 128");
    runtime.set_size_parameter(9, 16).unwrap();
    assert_eq!(runtime.properties().max_batch, 16);
    assert_eq!(runtime.batch_set_up(17).unwrap_err().code(), 5022);
    runtime.batch_set_up(16).unwrap();
}

#[test]
fn without_p2pdma_nothing_is_direct() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[3; 4096]);
    let buffer = fixture.buffer(4096);
    fixture.runtime.set_boolean_parameter(7, false).unwrap();
    assert_eq!(fixture.runtime.properties().status_flags, 0);
    assert_eq!(fixture.read(handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::Parameter, 1)]));
    assert_eq!(fixture.transfers(), 0);
}

#[test]
fn without_system_memory_host_buffers_are_refused() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[3; 4096]);
    let mut host = vec![0; 4096];
    let memory = fixture.mock.adopt(&mut host, MemoryKind::Host);
    fixture.runtime.set_boolean_parameter(6, false).unwrap();
    assert_eq!(fixture.runtime.buffer_register(memory, 4096, 0).unwrap_err().code(), 5013);
    assert_eq!(fixture.read(handle, memory, 4096, 0, 0).unwrap_err().code(), 5013);
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    let entry = Entry {
        mode: 1,
        opcode: 0,
        file: handle,
        buffer: memory,
        buffer_offset: 0,
        file_offset: 0,
        size: 4096,
        cookie: 0,
    };
    // SAFETY: nothing is submitted.
    let submitted = unsafe { fixture.runtime.batch_submit(batch, &[entry]) };
    assert_eq!(submitted.unwrap_err().code(), 5013);
    let (size, zero, mut result) = (4096, 0, -9);
    let (file_offset, buffer_offset) = (&raw const zero, &raw const zero);
    let late = Late { size: &raw const size, file_offset, buffer_offset, result: &raw mut result };
    let stream = RawStream(std::ptr::null_mut());
    // SAFETY: as above.
    let submitted =
        unsafe { fixture.runtime.submit(Direction::Read, handle, memory, late, stream) };
    assert_eq!(submitted.unwrap_err().code(), 5013);
    assert_eq!(result, -9);
    fixture.runtime.set_boolean_parameter(6, true).unwrap();
    assert_eq!(fixture.read(handle, memory, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::MemoryType, 1)]));
}

#[test]
fn compat_modes_act_on_io_that_starts_later() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[0; 4096]);
    let buffer = fixture.buffer(4096);
    fixture.runtime.set_boolean_parameter(2, true).unwrap();
    assert_eq!(fixture.read(handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::Forced, 1)]));
    assert_eq!(fixture.transfers(), 0);
}

#[test]
fn the_largest_direct_request_divides_larger_ones() {
    let fixture = Fixture::new();
    let bytes = super::fixture::pattern(64 << 10, 1);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let buffer = fixture.buffer(64 << 10);
    fixture.runtime.set_max_direct_io(16).unwrap();
    assert_eq!(fixture.read(handle, buffer, 64 << 10, 0, 0), Ok(64 << 10));
    assert_eq!(fixture.transfers(), 4);
    assert!(fixture.mock.peek(buffer, 64 << 10) == bytes);
    // The end of the file ends it.
    assert_eq!(fixture.read(handle, buffer, 32 << 10, 48 << 10, 0), Ok(16 << 10));
    // Less than a page cannot go directly.
    fixture.runtime.set_max_direct_io(1).unwrap();
    assert_eq!(fixture.write(handle, buffer, 8 << 10, 8 << 10, 0), Ok(8 << 10));
    assert!(fixture.content("a")[8 << 10..16 << 10] == bytes[48 << 10..56 << 10]);
}
