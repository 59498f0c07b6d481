# The targets of HIP's own package that programs of the host use, for the simulation.

get_filename_component(_hip_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET hip::host)
    add_library(hip::amdhip64 SHARED IMPORTED)
    set_target_properties(hip::amdhip64 PROPERTIES
        IMPORTED_LOCATION "${_hip_prefix}/lib/libamdhip64.so"
        IMPORTED_SONAME "libamdhip64.so.7"
        INTERFACE_INCLUDE_DIRECTORIES "${_hip_prefix}/include"
        INTERFACE_COMPILE_DEFINITIONS "__HIP_PLATFORM_AMD__")
    add_library(hip::host INTERFACE IMPORTED)
    set_property(TARGET hip::host PROPERTY INTERFACE_LINK_LIBRARIES hip::amdhip64)
endif()

unset(_hip_prefix)
