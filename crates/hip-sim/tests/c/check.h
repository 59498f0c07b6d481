/* Asserts for the C programs: the first thing that is not so ends the program and says where. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(what, value)                                                                              \
    do {                                                                                                 \
        long long found_ = (long long)(what), expected_ = (long long)(value);                            \
        if (found_ != expected_) {                                                                       \
            fprintf(stderr, "%s:%d: %s: expected %lld, found %lld\n", __FILE__, __LINE__, #what, expected_, found_); \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

#define OK(call) EXPECT(call, hipSuccess)

#endif
