/* Properties and parameters: what is returned is so, what is set is kept, what does not exist is refused. */

#include "use.h"

int main(void) {
    hipFileDriverProps_t props;
    FAILS(hipFileDriverGetProperties(NULL), hipFileInvalidValue);
    memset(&props, 0xee, sizeof props);
    GOOD(hipFileDriverGetProperties(&props));
    EXPECT(props.nvfs.major_version, HIPFILE_VERSION_MAJOR);
    EXPECT(props.nvfs.minor_version, HIPFILE_VERSION_MINOR);
    EXPECT(props.nvfs.max_direct_io_size, 0x7ffff000 / 1024);
    EXPECT(props.nvfs.driver_control_flags, 1u << hipFileAllowCompatMode);
    EXPECT(props.feature_flags,
           1u << hipFileBatchIOSupported | 1u << hipFileStreamsSupported | 1u << hipFileParallelIOSupported);
    EXPECT(props.max_batch_io_count, 128);
    TRUE(props.per_buffer_cache_size > 0 && props.per_buffer_cache_size <= props.max_device_cache_size);
    TRUE(props.max_device_pinned_mem_size > 0);

    GOOD(hipFileDriverSetPollMode(true, 16));
    GOOD(hipFileDriverSetMaxDirectIOSize(1024));
    GOOD(hipFileDriverSetMaxCacheSize(4096));
    GOOD(hipFileDriverSetMaxPinnedMemSize(8192));
    GOOD(hipFileDriverGetProperties(&props));
    EXPECT(props.nvfs.poll_thresh_size, 16);
    EXPECT(props.nvfs.driver_control_flags, 1u << hipFileAllowCompatMode | 1u << hipFileUsePollMode);
    EXPECT(props.nvfs.max_direct_io_size, 1024);
    EXPECT(props.max_device_cache_size, 4096);
    EXPECT(props.max_device_pinned_mem_size, 8192);
    FAILS(hipFileDriverSetMaxDirectIOSize(0), hipFileDriverUnsupportedLimit);
    FAILS(hipFileDriverSetMaxCacheSize(0), hipFileDriverUnsupportedLimit);
    FAILS(hipFileDriverSetMaxPinnedMemSize(0), hipFileDriverUnsupportedLimit);
    GOOD(hipFileDriverSetPollMode(false, 4));

    for (int i = 0; i < 12; i++) {
        hipFileSizeTConfigParameter_t size = (hipFileSizeTConfigParameter_t)i;
        hipFileBoolConfigParameter_t boolean = (hipFileBoolConfigParameter_t)i;
        size_t value = 0;
        GOOD(hipFileGetParameterSizeT(size, &value));
        /* These are what they are, or have a limit. */
        bool is_fixed = i == hipFileParamProfileStats || i == hipFileParamPropertiesPerBufferCacheSizeKB ||
                        i == hipFileParamPropertiesBatchIOTimeoutMs;
        bool is_limited = i == hipFileParamExecutionMaxIOThreads || i == hipFileParamPropertiesIOBatchsize;
        size_t other = is_fixed ? value : (size_t)i + (is_limited ? 10 : 1000);
        if (is_fixed || is_limited)
            FAILS(hipFileSetParameterSizeT(size, 1000 + i), hipFileDriverUnsupportedLimit);
        GOOD(hipFileSetParameterSizeT(size, other));
        GOOD(hipFileGetParameterSizeT(size, &value));
        EXPECT(value, other);
        FAILS(hipFileGetParameterSizeT(size, NULL), hipFileInvalidValue);
        bool is = false, was = false;
        GOOD(hipFileGetParameterBool(boolean, &was));
        GOOD(hipFileSetParameterBool(boolean, !was));
        GOOD(hipFileGetParameterBool(boolean, &is));
        EXPECT(is, !was);
        GOOD(hipFileSetParameterBool(boolean, was));
        FAILS(hipFileGetParameterBool(boolean, NULL), hipFileInvalidValue);
    }
    /* The two ways to set one value are one. */
    GOOD(hipFileDriverGetProperties(&props));
    EXPECT(props.nvfs.max_direct_io_size, 1000 + hipFileParamPropertiesMaxDirectIOSizeKB);

    char text[32];
    GOOD(hipFileSetParameterString(hipFileParamLoggingLevel, "debug"));
    GOOD(hipFileGetParameterString(hipFileParamLoggingLevel, text, sizeof text));
    EXPECT(strcmp(text, "debug"), 0);
    GOOD(hipFileSetParameterString(hipFileParamLoggingLevel, "off"));
    FAILS(hipFileSetParameterString(hipFileParamLoggingLevel, "loud"), hipFileInvalidValue);
    GOOD(hipFileGetParameterString(hipFileParamLoggingLevel, text, 4));
    EXPECT(strcmp(text, "off"), 0);
    memset(text, 'x', sizeof text);
    FAILS(hipFileGetParameterString(hipFileParamLoggingLevel, text, 3), hipFileInvalidValue);
    FAILS(hipFileGetParameterString(hipFileParamLoggingLevel, text, 0), hipFileInvalidValue);
    FAILS(hipFileGetParameterString(hipFileParamLoggingLevel, text, -1), hipFileInvalidValue);
    EXPECT(text[0], 'x');
    FAILS(hipFileGetParameterString(hipFileParamLoggingLevel, NULL, 32), hipFileInvalidValue);
    FAILS(hipFileSetParameterString(hipFileParamLoggingLevel, NULL), hipFileInvalidValue);
    GOOD(hipFileSetParameterString(hipFileParamLogDir, "/var/log"));
    GOOD(hipFileGetParameterString(hipFileParamLogDir, text, sizeof text));
    EXPECT(strcmp(text, "/var/log"), 0);
    FAILS(hipFileSetParameterString(hipFileParamLogDir, "\xff"), hipFileInvalidValue);

    static const unsigned none[] = {12, 13, 64, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        size_t value;
        bool is;
        FAILS(hipFileGetParameterSizeT((hipFileSizeTConfigParameter_t)none[i], &value), hipFileInvalidValue);
        FAILS(hipFileSetParameterSizeT((hipFileSizeTConfigParameter_t)none[i], 1), hipFileInvalidValue);
        FAILS(hipFileGetParameterBool((hipFileBoolConfigParameter_t)none[i], &is), hipFileInvalidValue);
        FAILS(hipFileSetParameterBool((hipFileBoolConfigParameter_t)none[i], true), hipFileInvalidValue);
        FAILS(hipFileGetParameterString((hipFileStringConfigParameter_t)none[i], text, 32), hipFileInvalidValue);
        FAILS(hipFileSetParameterString((hipFileStringConfigParameter_t)none[i], "x"), hipFileInvalidValue);
    }
    FAILS(hipFileGetParameterString((hipFileStringConfigParameter_t)3, text, 32), hipFileInvalidValue);

    FAILS(hipFileGetStatsL1(NULL), hipFileInvalidValue);
    FAILS(hipFileGetStatsL2(NULL), hipFileInvalidValue);
    FAILS(hipFileGetStatsL3(NULL), hipFileInvalidValue);
    hipFileStatsLevel1_t stats;
    memset(&stats, 0xee, sizeof stats);
    GOOD(hipFileGetStatsL1(&stats));
    EXPECT(stats.read_ops.ok, 0);
    EXPECT(stats.last_batch_write_bytes, 0);
    /* None of this opens the driver. */
    EXPECT(hipFileUseCount(), 0);
    return 0;
}
