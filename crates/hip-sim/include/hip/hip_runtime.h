/* There is no device code here: the runtime interface is all there is. */
#ifndef HIP_SIM_HIP_RUNTIME_H
#define HIP_SIM_HIP_RUNTIME_H

#include "hip_runtime_api.h"

#endif
