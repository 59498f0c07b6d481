//! The records and numbers of `hipfile.h`, as C lays them out.
//!
//! Enumerations are plain numbers here: a C program may pass any value, and a Rust `enum` with a value that it does not have
//! is undefined behaviour.

#![allow(missing_docs, reason = "the header documents them")]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `hipFileError_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub err: c_int,
    pub hip_drv_err: c_int,
}

/// `hipFileDriverProps_t`, its nested record laid flat. Sizes are in KiB.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverProps {
    pub major_version: c_uint,
    pub minor_version: c_uint,
    pub poll_thresh_size: u64,
    pub max_direct_io_size: u64,
    pub driver_status_flags: c_uint,
    pub driver_control_flags: c_uint,
    pub feature_flags: c_uint,
    pub max_device_cache_size: u64,
    pub per_buffer_cache_size: u64,
    pub max_device_pinned_mem_size: u64,
    pub max_batch_io_count: c_uint,
    pub max_batch_io_timeout_msecs: c_uint,
}

/// `hipFileDescr_t`. The union is eight bytes, of which a descriptor uses the first four; `fs_ops` is never looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Descr {
    pub kind: c_uint,
    pub handle: DescrHandle,
    pub fs_ops: *const c_void,
}

/// The union in it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union DescrHandle {
    pub fd: c_int,
    pub file: *mut c_void,
}

impl std::fmt::Debug for DescrHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DescrHandle")
    }
}

/// `hipFileIOParams_t`, its union laid flat.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoParams {
    pub mode: c_uint,
    pub device_base: *mut c_void,
    pub file_offset: i64,
    pub device_offset: i64,
    pub size: usize,
    pub fh: *mut c_void,
    pub opcode: c_uint,
    pub cookie: *mut c_void,
}

/// `hipFileIOEvents_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoEvents {
    pub cookie: *mut c_void,
    pub status: c_uint,
    pub ret: usize,
}

/// `hipFileOpCounter_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounter {
    pub ok: u64,
    pub err: u64,
}

/// `hipFileStatsLevel1_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsLevel1 {
    pub read_ops: OpCounter,
    pub write_ops: OpCounter,
    pub hdl_register_ops: OpCounter,
    pub hdl_deregister_ops: OpCounter,
    pub buf_register_ops: OpCounter,
    pub buf_deregister_ops: OpCounter,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub read_bw_bytes_per_sec: u64,
    pub write_bw_bytes_per_sec: u64,
    pub read_lat_avg_us: u64,
    pub write_lat_avg_us: u64,
    pub read_ops_per_sec: u64,
    pub write_ops_per_sec: u64,
    pub read_lat_sum_us: u64,
    pub write_lat_sum_us: u64,
    pub batch_submit_ops: OpCounter,
    pub batch_complete_ops: OpCounter,
    pub batch_setup_ops: OpCounter,
    pub batch_cancel_ops: OpCounter,
    pub batch_destroy_ops: OpCounter,
    pub batch_enqueued_ops: OpCounter,
    pub batch_posix_enqueued_ops: OpCounter,
    pub batch_processed_ops: OpCounter,
    pub batch_posix_processed_ops: OpCounter,
    pub batch_nvfs_submit_ops: OpCounter,
    pub batch_p2p_submit_ops: OpCounter,
    pub batch_aio_submit_ops: OpCounter,
    pub batch_iouring_submit_ops: OpCounter,
    pub batch_mixed_io_submit_ops: OpCounter,
    pub batch_total_submit_ops: OpCounter,
    pub batch_read_bytes: u64,
    pub batch_write_bytes: u64,
    pub batch_read_bw_bytes: u64,
    pub batch_write_bw_bytes: u64,
    pub batch_submit_lat_avg_us: u64,
    pub batch_completion_lat_avg_us: u64,
    pub batch_submit_ops_per_sec: u64,
    pub batch_complete_ops_per_sec: u64,
    pub batch_submit_lat_sum_us: u64,
    pub batch_completion_lat_sum_us: u64,
    pub last_batch_read_bytes: u64,
    pub last_batch_write_bytes: u64,
}

/// `hipFileStatsLevel2_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsLevel2 {
    pub basic: StatsLevel1,
    pub read_size_kb_hist: [u64; 32],
    pub write_size_kb_hist: [u64; 32],
}

/// `hipFilePerGpuStats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerGpuStats {
    pub uuid: [c_char; 16],
    pub read_bytes: u64,
    pub read_bw_bytes_per_sec: u64,
    pub read_utilization: u64,
    pub read_duration_us: u64,
    pub n_total_reads: u64,
    pub n_p2p_reads: u64,
    pub n_nvfs_reads: u64,
    pub n_posix_reads: u64,
    pub n_unaligned_reads: u64,
    pub n_dr_reads: u64,
    pub n_sparse_regions: u64,
    pub n_inline_regions: u64,
    pub n_reads_err: u64,
    pub writes_bytes: u64,
    pub write_bw_bytes_per_sec: u64,
    pub write_utilization: u64,
    pub write_duration_us: u64,
    pub n_total_writes: u64,
    pub n_p2p_writes: u64,
    pub n_nvfs_writes: u64,
    pub n_posix_writes: u64,
    pub n_unaligned_writes: u64,
    pub n_dr_writes: u64,
    pub n_writes_err: u64,
    pub n_mmap: u64,
    pub n_mmap_ok: u64,
    pub n_mmap_err: u64,
    pub n_mmap_free: u64,
    pub reg_bytes: u64,
}

/// `hipFileStatsLevel3_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsLevel3 {
    pub detailed: StatsLevel2,
    pub num_gpus: u32,
    pub per_gpu_stats: [PerGpuStats; 16],
}

const _: () = {
    use std::mem::{align_of, offset_of, size_of};

    assert!(size_of::<Status>() == 8 && align_of::<Status>() == 4);
    assert!(offset_of!(Status, err) == 0);
    assert!(offset_of!(Status, hip_drv_err) == 4);

    assert!(size_of::<DriverProps>() == 72 && align_of::<DriverProps>() == 8);
    assert!(offset_of!(DriverProps, major_version) == 0);
    assert!(offset_of!(DriverProps, minor_version) == 4);
    assert!(offset_of!(DriverProps, poll_thresh_size) == 8);
    assert!(offset_of!(DriverProps, max_direct_io_size) == 16);
    assert!(offset_of!(DriverProps, driver_status_flags) == 24);
    assert!(offset_of!(DriverProps, driver_control_flags) == 28);
    assert!(offset_of!(DriverProps, feature_flags) == 32);
    assert!(offset_of!(DriverProps, max_device_cache_size) == 40);
    assert!(offset_of!(DriverProps, per_buffer_cache_size) == 48);
    assert!(offset_of!(DriverProps, max_device_pinned_mem_size) == 56);
    assert!(offset_of!(DriverProps, max_batch_io_count) == 64);
    assert!(offset_of!(DriverProps, max_batch_io_timeout_msecs) == 68);

    assert!(size_of::<Descr>() == 24 && align_of::<Descr>() == 8);
    assert!(offset_of!(Descr, kind) == 0);
    assert!(offset_of!(Descr, handle) == 8);
    assert!(offset_of!(Descr, fs_ops) == 16);

    assert!(size_of::<IoParams>() == 64 && align_of::<IoParams>() == 8);
    assert!(offset_of!(IoParams, mode) == 0);
    assert!(offset_of!(IoParams, device_base) == 8);
    assert!(offset_of!(IoParams, file_offset) == 16);
    assert!(offset_of!(IoParams, device_offset) == 24);
    assert!(offset_of!(IoParams, size) == 32);
    assert!(offset_of!(IoParams, fh) == 40);
    assert!(offset_of!(IoParams, opcode) == 48);
    assert!(offset_of!(IoParams, cookie) == 56);

    assert!(size_of::<IoEvents>() == 24 && align_of::<IoEvents>() == 8);
    assert!(offset_of!(IoEvents, cookie) == 0);
    assert!(offset_of!(IoEvents, status) == 8);
    assert!(offset_of!(IoEvents, ret) == 16);

    assert!(size_of::<OpCounter>() == 16 && align_of::<OpCounter>() == 8);
    assert!(offset_of!(OpCounter, ok) == 0);
    assert!(offset_of!(OpCounter, err) == 8);

    assert!(size_of::<StatsLevel1>() == 512 && align_of::<StatsLevel1>() == 8);
    assert!(offset_of!(StatsLevel1, read_ops) == 0);
    assert!(offset_of!(StatsLevel1, write_ops) == 16);
    assert!(offset_of!(StatsLevel1, hdl_register_ops) == 32);
    assert!(offset_of!(StatsLevel1, hdl_deregister_ops) == 48);
    assert!(offset_of!(StatsLevel1, buf_register_ops) == 64);
    assert!(offset_of!(StatsLevel1, buf_deregister_ops) == 80);
    assert!(offset_of!(StatsLevel1, read_bytes) == 96);
    assert!(offset_of!(StatsLevel1, write_bytes) == 104);
    assert!(offset_of!(StatsLevel1, read_bw_bytes_per_sec) == 112);
    assert!(offset_of!(StatsLevel1, write_bw_bytes_per_sec) == 120);
    assert!(offset_of!(StatsLevel1, read_lat_avg_us) == 128);
    assert!(offset_of!(StatsLevel1, write_lat_avg_us) == 136);
    assert!(offset_of!(StatsLevel1, read_ops_per_sec) == 144);
    assert!(offset_of!(StatsLevel1, write_ops_per_sec) == 152);
    assert!(offset_of!(StatsLevel1, read_lat_sum_us) == 160);
    assert!(offset_of!(StatsLevel1, write_lat_sum_us) == 168);
    assert!(offset_of!(StatsLevel1, batch_submit_ops) == 176);
    assert!(offset_of!(StatsLevel1, batch_complete_ops) == 192);
    assert!(offset_of!(StatsLevel1, batch_setup_ops) == 208);
    assert!(offset_of!(StatsLevel1, batch_cancel_ops) == 224);
    assert!(offset_of!(StatsLevel1, batch_destroy_ops) == 240);
    assert!(offset_of!(StatsLevel1, batch_enqueued_ops) == 256);
    assert!(offset_of!(StatsLevel1, batch_posix_enqueued_ops) == 272);
    assert!(offset_of!(StatsLevel1, batch_processed_ops) == 288);
    assert!(offset_of!(StatsLevel1, batch_posix_processed_ops) == 304);
    assert!(offset_of!(StatsLevel1, batch_nvfs_submit_ops) == 320);
    assert!(offset_of!(StatsLevel1, batch_p2p_submit_ops) == 336);
    assert!(offset_of!(StatsLevel1, batch_aio_submit_ops) == 352);
    assert!(offset_of!(StatsLevel1, batch_iouring_submit_ops) == 368);
    assert!(offset_of!(StatsLevel1, batch_mixed_io_submit_ops) == 384);
    assert!(offset_of!(StatsLevel1, batch_total_submit_ops) == 400);
    assert!(offset_of!(StatsLevel1, batch_read_bytes) == 416);
    assert!(offset_of!(StatsLevel1, batch_write_bytes) == 424);
    assert!(offset_of!(StatsLevel1, batch_read_bw_bytes) == 432);
    assert!(offset_of!(StatsLevel1, batch_write_bw_bytes) == 440);
    assert!(offset_of!(StatsLevel1, batch_submit_lat_avg_us) == 448);
    assert!(offset_of!(StatsLevel1, batch_completion_lat_avg_us) == 456);
    assert!(offset_of!(StatsLevel1, batch_submit_ops_per_sec) == 464);
    assert!(offset_of!(StatsLevel1, batch_complete_ops_per_sec) == 472);
    assert!(offset_of!(StatsLevel1, batch_submit_lat_sum_us) == 480);
    assert!(offset_of!(StatsLevel1, batch_completion_lat_sum_us) == 488);
    assert!(offset_of!(StatsLevel1, last_batch_read_bytes) == 496);
    assert!(offset_of!(StatsLevel1, last_batch_write_bytes) == 504);

    assert!(size_of::<StatsLevel2>() == 1024 && align_of::<StatsLevel2>() == 8);
    assert!(offset_of!(StatsLevel2, basic) == 0);
    assert!(offset_of!(StatsLevel2, read_size_kb_hist) == 512);
    assert!(offset_of!(StatsLevel2, write_size_kb_hist) == 768);

    assert!(size_of::<PerGpuStats>() == 248 && align_of::<PerGpuStats>() == 8);
    assert!(offset_of!(PerGpuStats, uuid) == 0);
    assert!(offset_of!(PerGpuStats, read_bytes) == 16);
    assert!(offset_of!(PerGpuStats, read_bw_bytes_per_sec) == 24);
    assert!(offset_of!(PerGpuStats, read_utilization) == 32);
    assert!(offset_of!(PerGpuStats, read_duration_us) == 40);
    assert!(offset_of!(PerGpuStats, n_total_reads) == 48);
    assert!(offset_of!(PerGpuStats, n_p2p_reads) == 56);
    assert!(offset_of!(PerGpuStats, n_nvfs_reads) == 64);
    assert!(offset_of!(PerGpuStats, n_posix_reads) == 72);
    assert!(offset_of!(PerGpuStats, n_unaligned_reads) == 80);
    assert!(offset_of!(PerGpuStats, n_dr_reads) == 88);
    assert!(offset_of!(PerGpuStats, n_sparse_regions) == 96);
    assert!(offset_of!(PerGpuStats, n_inline_regions) == 104);
    assert!(offset_of!(PerGpuStats, n_reads_err) == 112);
    assert!(offset_of!(PerGpuStats, writes_bytes) == 120);
    assert!(offset_of!(PerGpuStats, write_bw_bytes_per_sec) == 128);
    assert!(offset_of!(PerGpuStats, write_utilization) == 136);
    assert!(offset_of!(PerGpuStats, write_duration_us) == 144);
    assert!(offset_of!(PerGpuStats, n_total_writes) == 152);
    assert!(offset_of!(PerGpuStats, n_p2p_writes) == 160);
    assert!(offset_of!(PerGpuStats, n_nvfs_writes) == 168);
    assert!(offset_of!(PerGpuStats, n_posix_writes) == 176);
    assert!(offset_of!(PerGpuStats, n_unaligned_writes) == 184);
    assert!(offset_of!(PerGpuStats, n_dr_writes) == 192);
    assert!(offset_of!(PerGpuStats, n_writes_err) == 200);
    assert!(offset_of!(PerGpuStats, n_mmap) == 208);
    assert!(offset_of!(PerGpuStats, n_mmap_ok) == 216);
    assert!(offset_of!(PerGpuStats, n_mmap_err) == 224);
    assert!(offset_of!(PerGpuStats, n_mmap_free) == 232);
    assert!(offset_of!(PerGpuStats, reg_bytes) == 240);

    assert!(size_of::<StatsLevel3>() == 5000 && align_of::<StatsLevel3>() == 8);
    assert!(offset_of!(StatsLevel3, detailed) == 0);
    assert!(offset_of!(StatsLevel3, num_gpus) == 1024);
    assert!(offset_of!(StatsLevel3, per_gpu_stats) == 1032);
};
