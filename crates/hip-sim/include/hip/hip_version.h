/* The version that the simulation stands for: clients are compiled for HIP 7.2. */
#ifndef HIP_SIM_HIP_VERSION_H
#define HIP_SIM_HIP_VERSION_H

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 2
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)

#endif
