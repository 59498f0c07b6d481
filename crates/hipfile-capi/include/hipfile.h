/* Copyright the fastpath authors. SPDX-License-Identifier: MIT */

/**
 * @file hipfile.h
 * File I/O straight to and from the memory of AMD GPUs.
 *
 * The library of this header can be put in the place of AMD's: names, numbers and layouts are the same. What differs in
 * behaviour is written beside each function.
 *
 * All sizes and offsets are in bytes unless said otherwise. Every function may be called from any thread at any time.
 * None is a point at which a thread is cancelled. A child of a fork begins anew: its parent's handles are none of its own.
 */

#ifndef HIPFILE_H
#define HIPFILE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIPFILE_VERSION_MAJOR 0
#define HIPFILE_VERSION_MINOR 5
#define HIPFILE_VERSION_PATCH 0

#if defined(_WIN32)
#error "hipFile is for Linux"
#endif

#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define HIPFILE_NODISCARD [[nodiscard]]
#else
#define HIPFILE_NODISCARD
#endif

/** An offset in a file or buffer. */
typedef off_t hoff_t;

/** A registered file. */
typedef void *hipFileHandle_t;

/** A set of operations that are submitted together. */
typedef void *hipFileBatchHandle_t;

#define HIPFILE_BASE_ERR 5000

/** What went wrong. hipFileGetOpErrorString says it in words. */
typedef enum hipFileOpError {
    hipFileSuccess = 0,
    hipFileDriverNotInitialized = 5001,
    hipFileDriverInvalidProps = 5002,
    hipFileDriverUnsupportedLimit = 5003,
    hipFileDriverVersionMismatch = 5004,
    hipFileDriverVersionReadError = 5005,
    hipFileDriverClosing = 5006,
    hipFilePlatformNotSupported = 5007,
    hipFileIONotSupported = 5008,
    hipFileDeviceNotSupported = 5009,
    hipFileDriverError = 5010,
    hipFileHipDriverError = 5011,
    hipFileHipPointerInvalid = 5012,
    hipFileHipMemoryTypeInvalid = 5013,
    hipFileHipPointerRangeError = 5014,
    hipFileHipContextMismatch = 5015,
    hipFileInvalidMappingSize = 5016,
    hipFileInvalidMappingRange = 5017,
    hipFileInvalidFileType = 5018,
    hipFileInvalidFileOpenFlag = 5019,
    hipFileDIONotSet = 5020,
    hipFileInvalidValue = 5022,
    hipFileMemoryAlreadyRegistered = 5023,
    hipFileMemoryNotRegistered = 5024,
    hipFilePermissionDenied = 5025,
    hipFileDriverAlreadyOpen = 5026,
    hipFileHandleNotRegistered = 5027,
    hipFileHandleAlreadyRegistered = 5028,
    hipFileDeviceNotFound = 5029,
    hipFileInternalError = 5030,
    hipFileGetNewFDFailed = 5031,
    hipFileDriverSetupError = 5033,
    hipFileIODisabled = 5034,
    hipFileBatchSubmitFailed = 5035,
    hipFileGPUMemoryPinningFailed = 5036,
    hipFileBatchFull = 5037,
    hipFileAsyncNotSupported = 5038,
    hipFileIOMaxError = 5039,
} hipFileOpError_t;

/** How a call ended. */
typedef struct HIPFILE_NODISCARD hipFileError {
    hipFileOpError_t err;    /**< the library's own code */
    hipError_t hip_drv_err;  /**< HIP's code if err is hipFileHipDriverError, else hipSuccess */
} hipFileError_t;

#define IS_HIPFILE_ERR(e) (abs((int)(e)) > HIPFILE_BASE_ERR)
#define HIPFILE_ERRSTR(e) hipFileGetOpErrorString((hipFileOpError_t)abs((int)(e)))
#ifndef IS_HIP_DRV_ERR
#define IS_HIP_DRV_ERR(status) ((status).err == hipFileHipDriverError)
#endif
#ifndef HIP_DRV_ERR
#define HIP_DRV_ERR(status) ((status).hip_drv_err)
#endif

/** Bit positions of nvfs.driver_status_flags. */
typedef enum hipFileDriverStatusFlags {
    hipFileLustreSupported = 0,
    hipFileWekaFSSupported = 1,
    hipFileNFSSupported = 2,
    hipFileGPFSSupported = 3,
    hipFileNVMeSupported = 4,
    hipFileNVMeoFSupported = 5,
    hipFileSCSISupported = 6,
    hipFileScaleFluxCSDSupported = 7,
    hipFileNVMeshSupported = 8,
    hipFileBeeGFSSupported = 9,
    hipFileNVMeP2PSupported = 11,
    hipFileScatefsSupported = 12,
} hipFileDriverStatusFlags_t;

/** Bit positions of nvfs.driver_control_flags. */
typedef enum hipFileDriverControlFlags {
    hipFileUsePollMode = 0,
    hipFileAllowCompatMode = 1,
} hipFileDriverControlFlags_t;

/** Bit positions of feature_flags. */
typedef enum hipFileFeatureFlags {
    hipFileDynRoutingSupported = 0,
    hipFileBatchIOSupported = 1,
    hipFileStreamsSupported = 2,
    hipFileParallelIOSupported = 3,
} hipFileFeatureFlags_t;

/** Kinds of file description. */
typedef enum hipFileFileHandleType {
    hipFileHandleTypeOpaqueFD = 1,
    hipFileHandleTypeOpaqueWin32 = 2,
    hipFileHandleTypeUserspaceFS = 3,
} hipFileFileHandleType_t;

#define HIPFILE_RDMA_REGISTER 1
#define HIPFILE_RDMA_RELAXED_ORDERING 2

/** What the library and the host offer. Sizes are in KiB. */
typedef struct hipFileDriverProps {
    struct {
        unsigned int major_version;
        unsigned int minor_version;
        uint64_t poll_thresh_size;
        uint64_t max_direct_io_size;
        unsigned int driver_status_flags;   /**< bits: hipFileDriverStatusFlags_t */
        unsigned int driver_control_flags;  /**< bits: hipFileDriverControlFlags_t */
    } nvfs;
    unsigned int feature_flags;  /**< bits: hipFileFeatureFlags_t */
    uint64_t max_device_cache_size;
    uint64_t per_buffer_cache_size;
    uint64_t max_device_pinned_mem_size;
    unsigned int max_batch_io_count;
    unsigned int max_batch_io_timeout_msecs;
} hipFileDriverProps_t;

/** For file systems in user space, which this library does not do. */
typedef struct hipFileRDMAInfo {
    int version;
    int desc_len;
    const char *desc_str;
} hipFileRDMAInfo_t;

/** For file systems in user space, which this library does not do. */
typedef struct hipFileFSOps {
    const char *(*fs_type)(void *handle);
    int (*getRDMADeviceList)(void *handle, struct sockaddr **hostaddrs);
    int (*getRDMADevicePriority)(void *handle, char *, size_t, hoff_t, struct sockaddr *hostaddr);
    ssize_t (*read)(void *handle, char *, size_t, hoff_t, hipFileRDMAInfo_t *);
    ssize_t (*write)(void *handle, const char *, size_t, hoff_t, hipFileRDMAInfo_t *);
} hipFileFSOps_t;

/** A file to be registered. Of an OpaqueFD only fd is looked at. */
typedef struct hipFileDescr {
    hipFileFileHandleType_t type;
    union {
        int fd;
        void *hFile;
    } handle;
    const hipFileFSOps_t *fs_ops;
} hipFileDescr_t;

/** What an operation of a batch does. */
typedef enum hipFileOpcode {
    hipFileBatchRead = 0,
    hipFileBatchWrite = 1,
} hipFileOpcode_t;

/** Where an operation of a batch stands. */
typedef enum hipFileStatus {
    hipFileWaiting = 0x1,
    hipFilePending = 0x2,
    hipFileInvalid = 0x4,
    hipFileCanceled = 0x8,
    hipFileComplete = 0x10,
    hipFileTimeout = 0x20,
    hipFileFailed = 0x40,
} hipFileStatus_t;

/** Kinds of operation. */
typedef enum hipFileBatchMode {
    hipFileBatch = 1,
} hipFileBatchMode_t;

/** One operation of a batch. */
typedef struct hipFileIOParams {
    hipFileBatchMode_t mode;
    union {
        struct {
            void *devPtr_base;
            int64_t file_offset;
            int64_t devPtr_offset;
            size_t size;
        } batch;
    } u;
    hipFileHandle_t fh;
    hipFileOpcode_t opcode;
    void *cookie;
} hipFileIOParams_t;

/** How one operation of a batch ended. */
typedef struct hipFileIOEvents {
    void *cookie;
    hipFileStatus_t status;
    size_t ret;  /**< bytes, or a negative error stored in an unsigned number */
} hipFileIOEvents_t;

#define HIPFILE_STREAM_FIXED_BUF_OFFSET 1
#define HIPFILE_STREAM_FIXED_FILE_OFFSET 2
#define HIPFILE_STREAM_FIXED_FILE_SIZE 4
#define HIPFILE_STREAM_PAGE_ALIGNED_INPUTS 8
#define HIPFILE_STREAM_FLAGS_MASK 0xf

/** Parameters that are sizes or counts. */
typedef enum hipFileSizeTConfigParameter {
    hipFileParamProfileStats = 0,
    hipFileParamExecutionMaxIOQueueDepth = 1,
    hipFileParamExecutionMaxIOThreads = 2,
    hipFileParamExecutionMinIOThresholdSizeKB = 3,
    hipFileParamExecutionMaxRequestParallelism = 4,
    hipFileParamPropertiesMaxDirectIOSizeKB = 5,
    hipFileParamPropertiesMaxDeviceCacheSizeKB = 6,
    hipFileParamPropertiesPerBufferCacheSizeKB = 7,
    hipFileParamPropertiesMaxDevicePinnedMemSizeKB = 8,
    hipFileParamPropertiesIOBatchsize = 9,
    hipFileParamPollthresholdSizeKB = 10,
    hipFileParamPropertiesBatchIOTimeoutMs = 11,
} hipFileSizeTConfigParameter_t;

/** Parameters that are switches. */
typedef enum hipFileBoolConfigParameter {
    hipFileParamPropertiesUsePollMode = 0,
    hipFileParamPropertiesAllowCompatMode = 1,
    hipFileParamForceCompatMode = 2,
    hipFileParamFsMiscApiCheckAggressive = 3,
    hipFileParamExecutionParallelIO = 4,
    hipFileParamProfileNvtx = 5,
    hipFileParamPropertiesAllowSystemMemory = 6,
    hipFileParamUsePcip2pdma = 7,
    hipFileParamPreferIOUring = 8,
    hipFileParamForceOdirectMode = 9,
    hipFileParamSkipTopologyDetection = 10,
    hipFileParamStreamMemopsBypass = 11,
} hipFileBoolConfigParameter_t;

/** Parameters that are texts. */
typedef enum hipFileStringConfigParameter {
    hipFileParamLoggingLevel = 0,
    hipFileParamEnvLogfilePath = 1,
    hipFileParamLogDir = 2,
} hipFileStringConfigParameter_t;

#define HIPFILE_MAX_GPUS 16
#define HIPFILE_GPU_UUID_LEN 16

/** Calls that went well and calls that did not. */
typedef struct hipFileOpCounter {
    uint64_t ok;
    uint64_t err;
} hipFileOpCounter_t;

/** Sums over all GPUs and both backends. Times are microseconds. What this library does not count is zero. */
typedef struct hipFileStatsLevel1 {
    hipFileOpCounter_t read_ops;
    hipFileOpCounter_t write_ops;
    hipFileOpCounter_t hdl_register_ops;
    hipFileOpCounter_t hdl_deregister_ops;
    hipFileOpCounter_t buf_register_ops;
    hipFileOpCounter_t buf_deregister_ops;
    uint64_t read_bytes;
    uint64_t write_bytes;
    uint64_t read_bw_bytes_per_sec;
    uint64_t write_bw_bytes_per_sec;
    uint64_t read_lat_avg_us;
    uint64_t write_lat_avg_us;
    uint64_t read_ops_per_sec;
    uint64_t write_ops_per_sec;
    uint64_t read_lat_sum_us;
    uint64_t write_lat_sum_us;
    hipFileOpCounter_t batch_submit_ops;
    hipFileOpCounter_t batch_complete_ops;
    hipFileOpCounter_t batch_setup_ops;
    hipFileOpCounter_t batch_cancel_ops;
    hipFileOpCounter_t batch_destroy_ops;
    hipFileOpCounter_t batch_enqueued_ops;
    hipFileOpCounter_t batch_posix_enqueued_ops;
    hipFileOpCounter_t batch_processed_ops;
    hipFileOpCounter_t batch_posix_processed_ops;
    hipFileOpCounter_t batch_nvfs_submit_ops;
    hipFileOpCounter_t batch_p2p_submit_ops;
    hipFileOpCounter_t batch_aio_submit_ops;
    hipFileOpCounter_t batch_iouring_submit_ops;
    hipFileOpCounter_t batch_mixed_io_submit_ops;
    hipFileOpCounter_t batch_total_submit_ops;
    uint64_t batch_read_bytes;
    uint64_t batch_write_bytes;
    uint64_t batch_read_bw_bytes;
    uint64_t batch_write_bw_bytes;
    uint64_t batch_submit_lat_avg_us;
    uint64_t batch_completion_lat_avg_us;
    uint64_t batch_submit_ops_per_sec;
    uint64_t batch_complete_ops_per_sec;
    uint64_t batch_submit_lat_sum_us;
    uint64_t batch_completion_lat_sum_us;
    uint64_t last_batch_read_bytes;
    uint64_t last_batch_write_bytes;
} hipFileStatsLevel1_t;

/**
 * Level 1 and histograms of transfers by size: element 0 counts those below 4 KiB, element i those from 2^(i+1) KiB up to
 * twice that, element 15 all from 64 MiB.
 */
typedef struct hipFileStatsLevel2 {
    hipFileStatsLevel1_t basic;
    uint64_t read_size_kb_hist[32];
    uint64_t write_size_kb_hist[32];
} hipFileStatsLevel2_t;

/** One GPU. `nvfs` stands for the fastpath, `posix` for the fallback. */
typedef struct hipFilePerGpuStats {
    char uuid[HIPFILE_GPU_UUID_LEN];
    uint64_t read_bytes;
    uint64_t read_bw_bytes_per_sec;
    uint64_t read_utilization;
    uint64_t read_duration_us;
    uint64_t n_total_reads;
    uint64_t n_p2p_reads;
    uint64_t n_nvfs_reads;
    uint64_t n_posix_reads;
    uint64_t n_unaligned_reads;
    uint64_t n_dr_reads;
    uint64_t n_sparse_regions;
    uint64_t n_inline_regions;
    uint64_t n_reads_err;
    uint64_t writes_bytes;
    uint64_t write_bw_bytes_per_sec;
    uint64_t write_utilization;
    uint64_t write_duration_us;
    uint64_t n_total_writes;
    uint64_t n_p2p_writes;
    uint64_t n_nvfs_writes;
    uint64_t n_posix_writes;
    uint64_t n_unaligned_writes;
    uint64_t n_dr_writes;
    uint64_t n_writes_err;
    uint64_t n_mmap;
    uint64_t n_mmap_ok;
    uint64_t n_mmap_err;
    uint64_t n_mmap_free;
    uint64_t reg_bytes;
} hipFilePerGpuStats_t;

/** Level 2 and every GPU, at its own index. */
typedef struct hipFileStatsLevel3 {
    hipFileStatsLevel2_t detailed;
    uint32_t num_gpus;
    hipFilePerGpuStats_t per_gpu_stats[HIPFILE_MAX_GPUS];
} hipFileStatsLevel3_t;

/** An error in words. Never NULL; works without a driver. */
const char *hipFileGetOpErrorString(hipFileOpError_t status);

/**
 * Registers an open file, and opens the driver if it is not open. The file stays the caller's. A descriptor number that was
 * closed and used again for another file is another file. A registered file takes up to two descriptors more: a copy, and the
 * same file with O_DIRECT the other way round. Of a descriptor's description only the type and the number are read.
 */
hipFileError_t hipFileHandleRegister(hipFileHandle_t *fh, hipFileDescr_t *descr);

/**
 * Ends a registration. Operations that are under way finish first; new ones do not find the file any more. The process's POSIX
 * record locks on the file (fcntl, F_SETLK) are gone with it, as after any close() of the file; those of F_OFD_SETLK stay.
 */
void hipFileHandleDeregister(hipFileHandle_t fh);

/**
 * Registers GPU memory, or memory of the host that HIP knows (hipHostMalloc, hipMallocManaged): I/O with that is a plain system
 * call, where AMD's library refuses it with hipFileHipMemoryTypeInvalid. Nothing is pinned; flags are not used. Opens the driver if
 * it is not open, also if the call then fails, as AMD's tests expect.
 */
hipFileError_t hipFileBufRegister(const void *buffer_base, size_t length, int flags);

/** Ends a registration; hipFileInternalError while an operation uses the buffer. */
hipFileError_t hipFileBufDeregister(const void *buffer_base);

/**
 * Reads from a file into GPU memory. The direct way waits for no stream, the fallback for the default one: have what uses
 * the memory end before.
 * @return bytes read; -1 with errno for an error of the system; else a negative hipFileOpError_t. HIP's errors are
 *         -hipFileHipDriverError here.
 */
ssize_t hipFileRead(hipFileHandle_t fh, void *buffer_base, size_t size, hoff_t file_offset,
                    hoff_t buffer_offset);

/**
 * Writes GPU memory to a file; returns as hipFileRead. If the descriptor has O_DIRECT, O_SYNC or O_DSYNC, what was written is on the
 * drive when the call returns: the fallback has fdatasync do that, once for the call. Without these flags it is in the page cache, as
 * after write(): call fdatasync() where it must last. AMD's library has every 16 MiB of a fallback write reach the drive.
 */
ssize_t hipFileWrite(hipFileHandle_t fh, const void *buffer_base, size_t size, hoff_t file_offset,
                     hoff_t buffer_offset);

/** Opens the driver once more. */
hipFileError_t hipFileDriverOpen(void);

/**
 * Closes the driver once; the last time drops every registration, and ends batches as hipFileBatchIODestroy does. Operations in
 * streams go on.
 */
hipFileError_t hipFileDriverClose(void);

/** How often the driver is open. */
int64_t hipFileUseCount(void);

/** What the library and the host offer. */
hipFileError_t hipFileDriverGetProperties(hipFileDriverProps_t *props);

/** Accepted and kept; this library does not poll. */
hipFileError_t hipFileDriverSetPollMode(bool poll, size_t poll_threshold_size);

/** The largest transfer that is given to the fastpath at once, in KiB. Larger ones go in pieces. */
hipFileError_t hipFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);

/** The most host memory for the large pieces of the fallback, in KiB. */
hipFileError_t hipFileDriverSetMaxCacheSize(size_t max_cache_size);

/** The same: that memory is pinned. The smaller of the two counts. */
hipFileError_t hipFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);

/** Makes a batch with room for max_nr operations, at most 128 or hipFileParamPropertiesIOBatchsize. */
hipFileError_t hipFileBatchIOSetUp(hipFileBatchHandle_t *batch_idp, unsigned max_nr);

/**
 * Submits operations, all or none. The array may be used again at once. They run at the same time and in any order. Like
 * hipFileRead, the call first waits for the default stream of each GPU with an operation that takes the fallback, or may
 * because the direct way between its file and the GPU has not worked yet; for other streams, and for any stream if all is
 * direct, have what uses the memory end before.
 */
hipFileError_t hipFileBatchIOSubmit(hipFileBatchHandle_t batch_idp, unsigned nr,
                                    hipFileIOParams_t *iocbp, unsigned flags);

/** Waits for min_nr operations to end and reports at most *nr, each once. No timeout waits for ever. */
hipFileError_t hipFileBatchIOGetStatus(hipFileBatchHandle_t batch_idp, unsigned min_nr, unsigned *nr,
                                       hipFileIOEvents_t *iocbp, struct timespec *timeout);

/** Cancels what has not begun and waits for the rest. */
hipFileError_t hipFileBatchIOCancel(hipFileBatchHandle_t batch_idp);

/** Cancels, waits, and ends the batch. */
void hipFileBatchIODestroy(hipFileBatchHandle_t batch_idp);

/**
 * Reads when the stream gets there: after all that is in the stream before it, and all that comes later finds the bytes in
 * place, whichever way they take. Other streams, the default one too, are ordered with it only as far as HIP orders them
 * with the stream. The four places must be aligned and stay valid until the stream has passed; *bytes_read_p is zero until
 * the operation is over, then bytes, -1 for an error of the system, or a negative hipFileOpError_t. If the call fails,
 * nothing is read. On a driver that is not open the call opens it and fails, as AMD's library does.
 */
hipFileError_t hipFileReadAsync(hipFileHandle_t fh, void *buffer_base, size_t *size_p,
                                hoff_t *file_offset_p, hoff_t *buffer_offset_p, ssize_t *bytes_read_p,
                                hipStream_t stream);

/**
 * Writes when the stream gets there, ordered as hipFileReadAsync is: what the stream computed before is written, and what it
 * does later may change the memory again. Operations on one file in different streams are in no order.
 */
hipFileError_t hipFileWriteAsync(hipFileHandle_t fh, void *buffer_base, size_t *size_p,
                                 hoff_t *file_offset_p, hoff_t *buffer_offset_p,
                                 ssize_t *bytes_written_p, hipStream_t stream);

/** Says which parameters of asynchronous calls on the stream are final when they are made: HIPFILE_STREAM_FIXED_... */
hipFileError_t hipFileStreamRegister(hipStream_t stream, unsigned flags);

/** Forgets that. */
hipFileError_t hipFileStreamDeregister(hipStream_t stream);

/** The version whose behaviour this is. Each pointer may be NULL. */
hipFileError_t hipFileGetVersion(unsigned *major, unsigned *minor, unsigned *patch);

/** The value of a parameter. */
hipFileError_t hipFileGetParameterSizeT(hipFileSizeTConfigParameter_t param, size_t *value);
/** The value of a parameter. */
hipFileError_t hipFileGetParameterBool(hipFileBoolConfigParameter_t param, bool *value);
/** The value of a parameter, with its final zero. */
hipFileError_t hipFileGetParameterString(hipFileStringConfigParameter_t param, char *desc_str, int len);
/**
 * Sets a parameter; hipFileDriverUnsupportedLimit if the library cannot keep to the value. What has a meaning: the largest direct
 * I/O, the caches, pinned memory and the size of a batch. One buffer's cache, a batch's timeout and the level of the statistics
 * are what they are. Others are kept and change nothing.
 */
hipFileError_t hipFileSetParameterSizeT(hipFileSizeTConfigParameter_t param, size_t value);
/**
 * Sets a parameter. What has a meaning, for calls that come later: hipFileParamPropertiesAllowCompatMode and
 * hipFileParamForceCompatMode as their variables, hipFileParamUsePcip2pdma (false: nothing is direct),
 * hipFileParamPropertiesAllowSystemMemory (false: memory of the host is refused). Others are kept and change nothing.
 */
hipFileError_t hipFileSetParameterBool(hipFileBoolConfigParameter_t param, bool value);
/** Sets a parameter. hipFileParamLoggingLevel is one of HIPFILE_LOG's; the others are kept and change nothing. */
hipFileError_t hipFileSetParameterString(hipFileStringConfigParameter_t param, const char *desc_str);

/**
 * Statistics of this process. Of many transfers below 128 KiB that a thread does, after the first 64 of a kind, one in 64 is timed
 * and stands for the others.
 */
hipFileError_t hipFileGetStatsL1(hipFileStatsLevel1_t *stats);
/** Statistics of this process. */
hipFileError_t hipFileGetStatsL2(hipFileStatsLevel2_t *stats);
/** Statistics of this process. */
hipFileError_t hipFileGetStatsL3(hipFileStatsLevel3_t *stats);

#ifdef __cplusplus
}
#endif

#endif
