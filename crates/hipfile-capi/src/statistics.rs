//! What this process has moved.

use std::time::Duration;

use fastpath_gpu::Direction;
use hipfile::raw::runtime;
use hipfile::stats::{Counter, GpuStats, Side, Snapshot};

use crate::abi::{OpCounter, PerGpuStats, StatsLevel1, StatsLevel2, StatsLevel3, Status};
use crate::door::status;
use crate::place::place;

const NO_PLACE: &str = "the place for the statistics is NULL";

/// `hipFileGetStatsL1`
///
/// # Safety
///
/// `stats` is NULL or a place for the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetStatsL1(stats: *mut StatsLevel1) -> Status {
    status("hipFileGetStatsL1", |runtime| {
        let stats = place(stats, NO_PLACE)?;
        let level = level1(&runtime.statistics()?);
        // SAFETY: the caller's promise.
        unsafe { stats.write(level) };
        Ok(())
    })
}

/// `hipFileGetStatsL2`
///
/// # Safety
///
/// `stats` is NULL or a place for the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetStatsL2(stats: *mut StatsLevel2) -> Status {
    status("hipFileGetStatsL2", |runtime| {
        let stats = place(stats, NO_PLACE)?;
        let level = level2(&runtime.statistics()?);
        // SAFETY: the caller's promise.
        unsafe { stats.write(level) };
        Ok(())
    })
}

/// `hipFileGetStatsL3`
///
/// # Safety
///
/// `stats` is NULL or a place for the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetStatsL3(stats: *mut StatsLevel3) -> Status {
    status("hipFileGetStatsL3", |runtime| {
        let stats = place(stats, NO_PLACE)?;
        let level = level3(&runtime.statistics()?);
        // SAFETY: the caller's promise.
        unsafe { stats.write(level) };
        Ok(())
    })
}

/// Sums over ways and sizes.
#[derive(Clone, Copy, Default)]
struct Total {
    bytes: u64,
    count: u64,
    time: Duration,
    errors: u64,
}

impl Total {
    fn of<'a>(sides: impl Iterator<Item = &'a Side>) -> Self {
        sides.fold(Self::default(), |sum, side| {
            let (bytes, count, time, errors) = side.totals();
            Self {
                bytes: sum.bytes.wrapping_add(bytes),
                count: sum.count.wrapping_add(count),
                time: sum.time.saturating_add(time),
                errors: sum.errors.wrapping_add(errors),
            }
        })
    }

    fn micros(self) -> u64 {
        u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX)
    }

    /// So many of something in each second of the time it took.
    fn rate(self, amount: u64) -> u64 {
        let micros = self.time.as_micros();
        let rate = (u128::from(amount) * 1_000_000).checked_div(micros).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn latency(self) -> u64 {
        self.micros().checked_div(self.count).unwrap_or(0)
    }

    fn operations(self) -> OpCounter {
        OpCounter { ok: self.count, err: self.errors }
    }
}

/// Both ways of a GPU.
fn sides(gpu: &GpuStats, direction: Direction) -> impl Iterator<Item = &Side> {
    [&gpu.fastpath, &gpu.fallback].into_iter().filter_map(move |way| way.get(direction as usize))
}

fn total(snapshot: &Snapshot, direction: Direction) -> Total {
    Total::of(snapshot.gpus.iter().flat_map(|gpu| sides(gpu, direction)))
}

fn level1(snapshot: &Snapshot) -> StatsLevel1 {
    let (read, write) = (total(snapshot, Direction::Read), total(snapshot, Direction::Write));
    let counter = |counter| snapshot.counter(counter);
    let ok = |count| OpCounter { ok: count, err: 0 };
    let submitted = counter(Counter::BatchOperations);
    StatsLevel1 {
        read_ops: read.operations(),
        write_ops: write.operations(),
        hdl_register_ops: ok(snapshot.files),
        buf_register_ops: ok(snapshot.buffers),
        read_bytes: read.bytes,
        write_bytes: write.bytes,
        read_bw_bytes_per_sec: read.rate(read.bytes),
        write_bw_bytes_per_sec: write.rate(write.bytes),
        read_lat_avg_us: read.latency(),
        write_lat_avg_us: write.latency(),
        read_ops_per_sec: read.rate(read.count),
        write_ops_per_sec: write.rate(write.count),
        read_lat_sum_us: read.micros(),
        write_lat_sum_us: write.micros(),
        batch_submit_ops: OpCounter {
            ok: counter(Counter::BatchSubmits),
            err: counter(Counter::BatchSubmitErrors),
        },
        batch_setup_ops: ok(counter(Counter::BatchSetUps)),
        batch_cancel_ops: ok(counter(Counter::BatchCancels)),
        batch_destroy_ops: ok(counter(Counter::BatchDestroys)),
        batch_enqueued_ops: ok(submitted),
        batch_processed_ops: ok(counter(Counter::BatchProcessed)),
        batch_total_submit_ops: ok(submitted),
        batch_read_bytes: counter(Counter::BatchReadBytes),
        batch_write_bytes: counter(Counter::BatchWriteBytes),
        ..StatsLevel1::default()
    }
}

fn level2(snapshot: &Snapshot) -> StatsLevel2 {
    let mut level = StatsLevel2 { basic: level1(snapshot), ..StatsLevel2::default() };
    let histograms = [
        (&mut level.read_size_kb_hist, Direction::Read),
        (&mut level.write_size_kb_hist, Direction::Write),
    ];
    for (histogram, direction) in histograms {
        for side in snapshot.gpus.iter().flat_map(|gpu| sides(gpu, direction)) {
            for (sum, count) in histogram.iter_mut().zip(side.count) {
                *sum = sum.wrapping_add(count);
            }
        }
    }
    level
}

fn level3(snapshot: &Snapshot) -> StatsLevel3 {
    let mut level = StatsLevel3 { detailed: level2(snapshot), ..StatsLevel3::default() };
    level.num_gpus = u32::try_from(snapshot.gpus.len()).unwrap_or(u32::MAX);
    for gpu in &snapshot.gpus {
        if let Some(place) = level.per_gpu_stats.get_mut(gpu.index) {
            *place = one_gpu(gpu, snapshot.buffers);
        }
    }
    level
}

fn one_gpu(gpu: &GpuStats, buffers: u64) -> PerGpuStats {
    let [fast_reads, fast_writes] =
        gpu.fastpath.each_ref().map(|side| Total::of([side].into_iter()));
    let [slow_reads, slow_writes] =
        gpu.fallback.each_ref().map(|side| Total::of([side].into_iter()));
    let reads = Total::of(sides(gpu, Direction::Read));
    let writes = Total::of(sides(gpu, Direction::Write));
    let unaligned =
        |direction| sides(gpu, direction).fold(0_u64, |sum, side| sum.wrapping_add(side.unaligned));
    let index = i32::try_from(gpu.index).unwrap_or(-1);
    let uuid = runtime().gpu_uuid(index).unwrap_or_default();
    PerGpuStats {
        uuid: uuid.map(u8::cast_signed),
        read_bytes: reads.bytes,
        read_bw_bytes_per_sec: reads.rate(reads.bytes),
        read_duration_us: reads.micros(),
        n_total_reads: reads.count,
        n_nvfs_reads: fast_reads.count,
        n_posix_reads: slow_reads.count,
        n_unaligned_reads: unaligned(Direction::Read),
        n_reads_err: reads.errors,
        writes_bytes: writes.bytes,
        write_bw_bytes_per_sec: writes.rate(writes.bytes),
        write_duration_us: writes.micros(),
        n_total_writes: writes.count,
        n_nvfs_writes: fast_writes.count,
        n_posix_writes: slow_writes.count,
        n_unaligned_writes: unaligned(Direction::Write),
        n_writes_err: writes.errors,
        n_mmap: buffers,
        n_mmap_ok: buffers,
        ..PerGpuStats::default()
    }
}
