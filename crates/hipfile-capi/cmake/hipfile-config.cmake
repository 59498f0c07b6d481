# The target hip::hipfile. HIP's own package is used where there is one; its headers are needed in any case.

get_filename_component(_hipfile_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

find_package(hip QUIET CONFIG)

if(NOT TARGET hip::hipfile)
    add_library(hip::hipfile SHARED IMPORTED)
    set_target_properties(hip::hipfile PROPERTIES
        IMPORTED_LOCATION "${_hipfile_prefix}/lib/libhipfile.so.@VERSION@"
        IMPORTED_SONAME "libhipfile.so.0"
        INTERFACE_INCLUDE_DIRECTORIES "${_hipfile_prefix}/include"
        INTERFACE_COMPILE_DEFINITIONS "__HIP_PLATFORM_AMD__")
    if(TARGET hip::host)
        set_property(TARGET hip::hipfile PROPERTY INTERFACE_LINK_LIBRARIES hip::host)
    endif()
endif()

unset(_hipfile_prefix)
