# How the command is linked. It starts for every single run, and half of what a dynamic one takes is
# spent before main: `pyplaypen run -- /bin/true` took 3.1 ms linked dynamically, 1.8 ms with libstdc++
# and libcrypto inside, 1.5 ms fully static (hyperfine -N, beside 1.55 ms for `timeout 5 /bin/true`).
# Static is possible since nothing in it asks libc for users, hosts or plugins.
option(PYPLAYPEN_STATIC_COMMAND "Link the pyplaypen command fully static where the archives are installed" ON)

include(CheckCXXSourceCompiles)
find_library(PYPLAYPEN_CRYPTO_ARCHIVE libcrypto.a)
mark_as_advanced(PYPLAYPEN_CRYPTO_ARCHIVE)
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
check_cxx_source_compiles("#include <string>
int main(int argc, char**) { return std::string(static_cast<unsigned>(argc), 'x').empty(); }"
  PYPLAYPEN_HAS_STATIC_PIE)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

# What a layer links for SHA-256: the shared library, or the archive where the executable that it ends
# up in names one. Not the same for all: the zygote exports its symbols, and CPython's own modules bring
# the shared libcrypto along.
set(PYPLAYPEN_CRYPTO
    "$<IF:$<BOOL:$<TARGET_PROPERTY:PYPLAYPEN_CRYPTO>>,$<TARGET_PROPERTY:PYPLAYPEN_CRYPTO>,OpenSSL::Crypto>")

function(pyplaypen_link_command target)
  if(NOT PYPLAYPEN_STATIC_COMMAND OR PYPLAYPEN_SANITIZE)
    return()
  endif()
  if(NOT PYPLAYPEN_HAS_STATIC_PIE OR NOT PYPLAYPEN_CRYPTO_ARCHIVE)
    message(STATUS "No static libc, libstdc++ or libcrypto: the command is linked dynamically")
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    PYPLAYPEN_CRYPTO ${PYPLAYPEN_CRYPTO_ARCHIVE}
    POSITION_INDEPENDENT_CODE ON)
  target_link_options(${target} PRIVATE -static-pie)
endfunction()
