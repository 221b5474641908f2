# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: the public headers, the library, the command, the
# libduckdb it was built with (privately, in lib/holdfast) and its extensions.
if(NOT TARGET holdfast)
  return()
endif()

if(HOLDFAST_MUTANTS)
  install(CODE "message(FATAL_ERROR \"a build with planted mistakes is not installed\")")
endif()
install(TARGETS holdfast LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET holdfast_command)
  install(TARGETS holdfast_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES include/holdfast/holdfast.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/holdfast OPTIONAL)
get_filename_component(libduckdb ${HF_THIRD_PARTY}/duckdb/lib/libduckdb.so REALPATH)
install(FILES ${libduckdb} DESTINATION ${CMAKE_INSTALL_LIBDIR}/holdfast RENAME libduckdb.so
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(DIRECTORY ${HF_THIRD_PARTY}/duckdb-extensions/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/holdfast/extensions)

configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
