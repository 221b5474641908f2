# SPDX-License-Identifier: Apache-2.0
# Language, warnings and link options of our own code, as the target hf_settings.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # without -DNDEBUG: assertions stay
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(hf_settings INTERFACE)
target_compile_definitions(hf_settings INTERFACE _GNU_SOURCE= HOLDFAST_VERSION="${PROJECT_VERSION}")
target_compile_options(hf_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Werror)
target_include_directories(hf_settings INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(hf_settings INTERFACE Threads::Threads)

# Unused functions are dropped; calls inside libholdfast.so need no interposition.
add_compile_options(-ffunction-sections -fdata-sections -fno-semantic-interposition)
# Lazy binding: libduckdb has tens of thousands of symbols and the command must start fast.
add_link_options(-Wl,--gc-sections -Wl,--as-needed -Wl,-O1 -Wl,--hash-style=gnu -Wl,-z,lazy)

if(HOLDFAST_SANITIZE)
  target_compile_options(hf_settings INTERFACE -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()

if(HOLDFAST_MUTANTS)
  target_compile_definitions(hf_settings INTERFACE HOLDFAST_MUTANTS=1)
endif()

if(HOLDFAST_FUZZ)
  target_compile_options(hf_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
