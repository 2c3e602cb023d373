# find_package(msprof_agent) gives one of two targets to be linked, before the CANN libraries:
#
#   msprof_agent::shared   libmsprof_agent.so
#   msprof_agent::static   libmsprof_agent.a, in the program itself
#
# Never both in one program: they would be two agents.

if(CMAKE_VERSION VERSION_LESS 3.13)
    set(msprof_agent_FOUND FALSE)
    set(msprof_agent_NOT_FOUND_MESSAGE "msprof_agent needs CMake 3.13 or newer.")
    return()
endif()

get_filename_component(_msprof_agent_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_msprof_agent_so "${_msprof_agent_prefix}/lib/libmsprof_agent.so")
set(_msprof_agent_a "${_msprof_agent_prefix}/lib/libmsprof_agent.a")

foreach(_msprof_agent_file IN ITEMS "${_msprof_agent_so}" "${_msprof_agent_a}" "${_msprof_agent_prefix}/include/msprof_agent.h")
    if(NOT EXISTS "${_msprof_agent_file}")
        set(msprof_agent_FOUND FALSE)
        set(msprof_agent_NOT_FOUND_MESSAGE "${_msprof_agent_file} is missing: install msprof-agent anew.")
        return()
    endif()
endforeach()

if(NOT TARGET msprof_agent::shared)
    add_library(msprof_agent::shared SHARED IMPORTED)
    # Among the options, which stand before all libraries: a program that calls nothing of it would not be linked
    # with it otherwise, where the linker drops what looks unused. The location gives the RPATH of the build tree.
    set_target_properties(msprof_agent::shared PROPERTIES
        IMPORTED_LOCATION "${_msprof_agent_so}"
        IMPORTED_SONAME "libmsprof_agent.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_msprof_agent_prefix}/include"
        INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed,${_msprof_agent_so},--pop-state")
endif()

if(NOT TARGET msprof_agent::static)
    add_library(msprof_agent::static INTERFACE IMPORTED)
    # The whole archive: its constructor is called by nobody.
    set_target_properties(msprof_agent::static PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_msprof_agent_prefix}/include"
        INTERFACE_LINK_OPTIONS "LINKER:--push-state,--whole-archive,${_msprof_agent_a},--pop-state"
        INTERFACE_LINK_LIBRARIES "pthread;dl;rt;m")
endif()

unset(_msprof_agent_file)
unset(_msprof_agent_so)
unset(_msprof_agent_a)
unset(_msprof_agent_prefix)
