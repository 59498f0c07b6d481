/* Every value, size and offset of hipfile.h, checked when this is compiled: as C11 and as C++17. */

#include <stddef.h>

#include "hipfile.h"

#ifdef __cplusplus
#define CHECK(what) static_assert(what, #what)
#define ALIGN(type) alignof(type)
#else
#define CHECK(what) _Static_assert(what, #what)
#define ALIGN(type) _Alignof(type)
#endif
#define RECORD(type, size, align) CHECK(sizeof(type) == (size)); CHECK(ALIGN(type) == (align))
#define AT(type, field, at) CHECK(offsetof(type, field) == (at))

CHECK(hipFileSuccess == 0);
CHECK(hipFileDriverNotInitialized == 5001);
CHECK(hipFileDriverInvalidProps == 5002);
CHECK(hipFileDriverUnsupportedLimit == 5003);
CHECK(hipFileDriverVersionMismatch == 5004);
CHECK(hipFileDriverVersionReadError == 5005);
CHECK(hipFileDriverClosing == 5006);
CHECK(hipFilePlatformNotSupported == 5007);
CHECK(hipFileIONotSupported == 5008);
CHECK(hipFileDeviceNotSupported == 5009);
CHECK(hipFileDriverError == 5010);
CHECK(hipFileHipDriverError == 5011);
CHECK(hipFileHipPointerInvalid == 5012);
CHECK(hipFileHipMemoryTypeInvalid == 5013);
CHECK(hipFileHipPointerRangeError == 5014);
CHECK(hipFileHipContextMismatch == 5015);
CHECK(hipFileInvalidMappingSize == 5016);
CHECK(hipFileInvalidMappingRange == 5017);
CHECK(hipFileInvalidFileType == 5018);
CHECK(hipFileInvalidFileOpenFlag == 5019);
CHECK(hipFileDIONotSet == 5020);
CHECK(hipFileInvalidValue == 5022);
CHECK(hipFileMemoryAlreadyRegistered == 5023);
CHECK(hipFileMemoryNotRegistered == 5024);
CHECK(hipFilePermissionDenied == 5025);
CHECK(hipFileDriverAlreadyOpen == 5026);
CHECK(hipFileHandleNotRegistered == 5027);
CHECK(hipFileHandleAlreadyRegistered == 5028);
CHECK(hipFileDeviceNotFound == 5029);
CHECK(hipFileInternalError == 5030);
CHECK(hipFileGetNewFDFailed == 5031);
CHECK(hipFileDriverSetupError == 5033);
CHECK(hipFileIODisabled == 5034);
CHECK(hipFileBatchSubmitFailed == 5035);
CHECK(hipFileGPUMemoryPinningFailed == 5036);
CHECK(hipFileBatchFull == 5037);
CHECK(hipFileAsyncNotSupported == 5038);
CHECK(hipFileIOMaxError == 5039);
CHECK(hipFileLustreSupported == 0);
CHECK(hipFileWekaFSSupported == 1);
CHECK(hipFileNFSSupported == 2);
CHECK(hipFileGPFSSupported == 3);
CHECK(hipFileNVMeSupported == 4);
CHECK(hipFileNVMeoFSupported == 5);
CHECK(hipFileSCSISupported == 6);
CHECK(hipFileScaleFluxCSDSupported == 7);
CHECK(hipFileNVMeshSupported == 8);
CHECK(hipFileBeeGFSSupported == 9);
CHECK(hipFileNVMeP2PSupported == 11);
CHECK(hipFileScatefsSupported == 12);
CHECK(hipFileUsePollMode == 0);
CHECK(hipFileAllowCompatMode == 1);
CHECK(hipFileDynRoutingSupported == 0);
CHECK(hipFileBatchIOSupported == 1);
CHECK(hipFileStreamsSupported == 2);
CHECK(hipFileParallelIOSupported == 3);
CHECK(hipFileHandleTypeOpaqueFD == 1);
CHECK(hipFileHandleTypeOpaqueWin32 == 2);
CHECK(hipFileHandleTypeUserspaceFS == 3);
CHECK(hipFileBatchRead == 0);
CHECK(hipFileBatchWrite == 1);
CHECK(hipFileWaiting == 1);
CHECK(hipFilePending == 2);
CHECK(hipFileInvalid == 4);
CHECK(hipFileCanceled == 8);
CHECK(hipFileComplete == 16);
CHECK(hipFileTimeout == 32);
CHECK(hipFileFailed == 64);
CHECK(hipFileBatch == 1);
CHECK(hipFileParamProfileStats == 0);
CHECK(hipFileParamExecutionMaxIOQueueDepth == 1);
CHECK(hipFileParamExecutionMaxIOThreads == 2);
CHECK(hipFileParamExecutionMinIOThresholdSizeKB == 3);
CHECK(hipFileParamExecutionMaxRequestParallelism == 4);
CHECK(hipFileParamPropertiesMaxDirectIOSizeKB == 5);
CHECK(hipFileParamPropertiesMaxDeviceCacheSizeKB == 6);
CHECK(hipFileParamPropertiesPerBufferCacheSizeKB == 7);
CHECK(hipFileParamPropertiesMaxDevicePinnedMemSizeKB == 8);
CHECK(hipFileParamPropertiesIOBatchsize == 9);
CHECK(hipFileParamPollthresholdSizeKB == 10);
CHECK(hipFileParamPropertiesBatchIOTimeoutMs == 11);
CHECK(hipFileParamPropertiesUsePollMode == 0);
CHECK(hipFileParamPropertiesAllowCompatMode == 1);
CHECK(hipFileParamForceCompatMode == 2);
CHECK(hipFileParamFsMiscApiCheckAggressive == 3);
CHECK(hipFileParamExecutionParallelIO == 4);
CHECK(hipFileParamProfileNvtx == 5);
CHECK(hipFileParamPropertiesAllowSystemMemory == 6);
CHECK(hipFileParamUsePcip2pdma == 7);
CHECK(hipFileParamPreferIOUring == 8);
CHECK(hipFileParamForceOdirectMode == 9);
CHECK(hipFileParamSkipTopologyDetection == 10);
CHECK(hipFileParamStreamMemopsBypass == 11);
CHECK(hipFileParamLoggingLevel == 0);
CHECK(hipFileParamEnvLogfilePath == 1);
CHECK(hipFileParamLogDir == 2);
RECORD(hipFileOpError_t, 4, 4);
RECORD(hipFileDriverStatusFlags_t, 4, 4);
RECORD(hipFileDriverControlFlags_t, 4, 4);
RECORD(hipFileFeatureFlags_t, 4, 4);
RECORD(hipFileFileHandleType_t, 4, 4);
RECORD(hipFileOpcode_t, 4, 4);
RECORD(hipFileStatus_t, 4, 4);
RECORD(hipFileBatchMode_t, 4, 4);
RECORD(hipFileSizeTConfigParameter_t, 4, 4);
RECORD(hipFileBoolConfigParameter_t, 4, 4);
RECORD(hipFileStringConfigParameter_t, 4, 4);
RECORD(hipError_t, 4, 4);

RECORD(hipFileError_t, 8, 4);
AT(hipFileError_t, err, 0);
AT(hipFileError_t, hip_drv_err, 4);

RECORD(hipFileDriverProps_t, 72, 8);
AT(hipFileDriverProps_t, nvfs.major_version, 0);
AT(hipFileDriverProps_t, nvfs.minor_version, 4);
AT(hipFileDriverProps_t, nvfs.poll_thresh_size, 8);
AT(hipFileDriverProps_t, nvfs.max_direct_io_size, 16);
AT(hipFileDriverProps_t, nvfs.driver_status_flags, 24);
AT(hipFileDriverProps_t, nvfs.driver_control_flags, 28);
AT(hipFileDriverProps_t, feature_flags, 32);
AT(hipFileDriverProps_t, max_device_cache_size, 40);
AT(hipFileDriverProps_t, per_buffer_cache_size, 48);
AT(hipFileDriverProps_t, max_device_pinned_mem_size, 56);
AT(hipFileDriverProps_t, max_batch_io_count, 64);
AT(hipFileDriverProps_t, max_batch_io_timeout_msecs, 68);

RECORD(hipFileRDMAInfo_t, 16, 8);
AT(hipFileRDMAInfo_t, version, 0);
AT(hipFileRDMAInfo_t, desc_len, 4);
AT(hipFileRDMAInfo_t, desc_str, 8);

RECORD(hipFileFSOps_t, 40, 8);
AT(hipFileFSOps_t, fs_type, 0);
AT(hipFileFSOps_t, getRDMADeviceList, 8);
AT(hipFileFSOps_t, getRDMADevicePriority, 16);
AT(hipFileFSOps_t, read, 24);
AT(hipFileFSOps_t, write, 32);

RECORD(hipFileDescr_t, 24, 8);
AT(hipFileDescr_t, type, 0);
AT(hipFileDescr_t, handle, 8);
AT(hipFileDescr_t, handle.fd, 8);
AT(hipFileDescr_t, handle.hFile, 8);
AT(hipFileDescr_t, fs_ops, 16);

RECORD(hipFileIOParams_t, 64, 8);
AT(hipFileIOParams_t, mode, 0);
AT(hipFileIOParams_t, u.batch.devPtr_base, 8);
AT(hipFileIOParams_t, u.batch.file_offset, 16);
AT(hipFileIOParams_t, u.batch.devPtr_offset, 24);
AT(hipFileIOParams_t, u.batch.size, 32);
AT(hipFileIOParams_t, fh, 40);
AT(hipFileIOParams_t, opcode, 48);
AT(hipFileIOParams_t, cookie, 56);

RECORD(hipFileIOEvents_t, 24, 8);
AT(hipFileIOEvents_t, cookie, 0);
AT(hipFileIOEvents_t, status, 8);
AT(hipFileIOEvents_t, ret, 16);

RECORD(hipFileOpCounter_t, 16, 8);
AT(hipFileOpCounter_t, ok, 0);
AT(hipFileOpCounter_t, err, 8);

RECORD(hipFileStatsLevel1_t, 512, 8);
AT(hipFileStatsLevel1_t, read_ops, 0);
AT(hipFileStatsLevel1_t, write_ops, 16);
AT(hipFileStatsLevel1_t, hdl_register_ops, 32);
AT(hipFileStatsLevel1_t, hdl_deregister_ops, 48);
AT(hipFileStatsLevel1_t, buf_register_ops, 64);
AT(hipFileStatsLevel1_t, buf_deregister_ops, 80);
AT(hipFileStatsLevel1_t, read_bytes, 96);
AT(hipFileStatsLevel1_t, write_bytes, 104);
AT(hipFileStatsLevel1_t, read_bw_bytes_per_sec, 112);
AT(hipFileStatsLevel1_t, write_bw_bytes_per_sec, 120);
AT(hipFileStatsLevel1_t, read_lat_avg_us, 128);
AT(hipFileStatsLevel1_t, write_lat_avg_us, 136);
AT(hipFileStatsLevel1_t, read_ops_per_sec, 144);
AT(hipFileStatsLevel1_t, write_ops_per_sec, 152);
AT(hipFileStatsLevel1_t, read_lat_sum_us, 160);
AT(hipFileStatsLevel1_t, write_lat_sum_us, 168);
AT(hipFileStatsLevel1_t, batch_submit_ops, 176);
AT(hipFileStatsLevel1_t, batch_complete_ops, 192);
AT(hipFileStatsLevel1_t, batch_setup_ops, 208);
AT(hipFileStatsLevel1_t, batch_cancel_ops, 224);
AT(hipFileStatsLevel1_t, batch_destroy_ops, 240);
AT(hipFileStatsLevel1_t, batch_enqueued_ops, 256);
AT(hipFileStatsLevel1_t, batch_posix_enqueued_ops, 272);
AT(hipFileStatsLevel1_t, batch_processed_ops, 288);
AT(hipFileStatsLevel1_t, batch_posix_processed_ops, 304);
AT(hipFileStatsLevel1_t, batch_nvfs_submit_ops, 320);
AT(hipFileStatsLevel1_t, batch_p2p_submit_ops, 336);
AT(hipFileStatsLevel1_t, batch_aio_submit_ops, 352);
AT(hipFileStatsLevel1_t, batch_iouring_submit_ops, 368);
AT(hipFileStatsLevel1_t, batch_mixed_io_submit_ops, 384);
AT(hipFileStatsLevel1_t, batch_total_submit_ops, 400);
AT(hipFileStatsLevel1_t, batch_read_bytes, 416);
AT(hipFileStatsLevel1_t, batch_write_bytes, 424);
AT(hipFileStatsLevel1_t, batch_read_bw_bytes, 432);
AT(hipFileStatsLevel1_t, batch_write_bw_bytes, 440);
AT(hipFileStatsLevel1_t, batch_submit_lat_avg_us, 448);
AT(hipFileStatsLevel1_t, batch_completion_lat_avg_us, 456);
AT(hipFileStatsLevel1_t, batch_submit_ops_per_sec, 464);
AT(hipFileStatsLevel1_t, batch_complete_ops_per_sec, 472);
AT(hipFileStatsLevel1_t, batch_submit_lat_sum_us, 480);
AT(hipFileStatsLevel1_t, batch_completion_lat_sum_us, 488);
AT(hipFileStatsLevel1_t, last_batch_read_bytes, 496);
AT(hipFileStatsLevel1_t, last_batch_write_bytes, 504);

RECORD(hipFileStatsLevel2_t, 1024, 8);
AT(hipFileStatsLevel2_t, basic, 0);
AT(hipFileStatsLevel2_t, read_size_kb_hist, 512);
AT(hipFileStatsLevel2_t, write_size_kb_hist, 768);

RECORD(hipFilePerGpuStats_t, 248, 8);
AT(hipFilePerGpuStats_t, uuid, 0);
AT(hipFilePerGpuStats_t, read_bytes, 16);
AT(hipFilePerGpuStats_t, read_bw_bytes_per_sec, 24);
AT(hipFilePerGpuStats_t, read_utilization, 32);
AT(hipFilePerGpuStats_t, read_duration_us, 40);
AT(hipFilePerGpuStats_t, n_total_reads, 48);
AT(hipFilePerGpuStats_t, n_p2p_reads, 56);
AT(hipFilePerGpuStats_t, n_nvfs_reads, 64);
AT(hipFilePerGpuStats_t, n_posix_reads, 72);
AT(hipFilePerGpuStats_t, n_unaligned_reads, 80);
AT(hipFilePerGpuStats_t, n_dr_reads, 88);
AT(hipFilePerGpuStats_t, n_sparse_regions, 96);
AT(hipFilePerGpuStats_t, n_inline_regions, 104);
AT(hipFilePerGpuStats_t, n_reads_err, 112);
AT(hipFilePerGpuStats_t, writes_bytes, 120);
AT(hipFilePerGpuStats_t, write_bw_bytes_per_sec, 128);
AT(hipFilePerGpuStats_t, write_utilization, 136);
AT(hipFilePerGpuStats_t, write_duration_us, 144);
AT(hipFilePerGpuStats_t, n_total_writes, 152);
AT(hipFilePerGpuStats_t, n_p2p_writes, 160);
AT(hipFilePerGpuStats_t, n_nvfs_writes, 168);
AT(hipFilePerGpuStats_t, n_posix_writes, 176);
AT(hipFilePerGpuStats_t, n_unaligned_writes, 184);
AT(hipFilePerGpuStats_t, n_dr_writes, 192);
AT(hipFilePerGpuStats_t, n_writes_err, 200);
AT(hipFilePerGpuStats_t, n_mmap, 208);
AT(hipFilePerGpuStats_t, n_mmap_ok, 216);
AT(hipFilePerGpuStats_t, n_mmap_err, 224);
AT(hipFilePerGpuStats_t, n_mmap_free, 232);
AT(hipFilePerGpuStats_t, reg_bytes, 240);

RECORD(hipFileStatsLevel3_t, 5000, 8);
AT(hipFileStatsLevel3_t, detailed, 0);
AT(hipFileStatsLevel3_t, num_gpus, 1024);
AT(hipFileStatsLevel3_t, per_gpu_stats, 1032);

CHECK(sizeof(hoff_t) == 8);
CHECK(sizeof(hipFileHandle_t) == 8);
CHECK(sizeof(hipFileBatchHandle_t) == 8);
CHECK(HIPFILE_BASE_ERR == 5000);
CHECK(HIPFILE_VERSION_MAJOR == 0 && HIPFILE_VERSION_MINOR == 5 && HIPFILE_VERSION_PATCH == 0);
CHECK(HIPFILE_RDMA_REGISTER == 1 && HIPFILE_RDMA_RELAXED_ORDERING == 2);
CHECK(HIPFILE_STREAM_FIXED_BUF_OFFSET == 1 && HIPFILE_STREAM_FIXED_FILE_OFFSET == 2);
CHECK(HIPFILE_STREAM_FIXED_FILE_SIZE == 4 && HIPFILE_STREAM_PAGE_ALIGNED_INPUTS == 8);
CHECK(HIPFILE_STREAM_FLAGS_MASK == 0xf);
CHECK(HIPFILE_MAX_GPUS == 16 && HIPFILE_GPU_UUID_LEN == 16);

int main(void) {
    return IS_HIPFILE_ERR(-5022) && !IS_HIPFILE_ERR(-5000) ? 0 : 1;
}
