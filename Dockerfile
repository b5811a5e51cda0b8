# The command in an image of its own, and the test suite in another:
#   docker build -t pyplaypen .
#   docker run --rm --network none --pids-limit 256 --memory 2g pyplaypen exec 'sum(range(10))'
#   docker build --target test -t pyplaypen-test .
#   docker run --rm --network none pyplaypen-test
# docs/enforcement.md says what holds in a container, by how it is run. Calls run as the image's own
# user; with --user 0 each slot of a Sandbox has a user of its own, and process_count is counted for it.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
# By themselves, so that a change of the sources does not install them again.
COPY scripts/lib.sh scripts/
RUN bash -euc 'source scripts/lib.sh; need_packages "${BUILD_PACKAGES[@]}"'
COPY . .
RUN bash -euc 'source scripts/lib.sh; build release pyplaypen pyplaypen_zygote pyplaypen_python_package'
# Without the component "development": library, headers, CMake package.
RUN DESTDIR=/installed cmake --install build/release --strip --component Unspecified

FROM ${BASE} AS command
# The second one's name has the version that the first one brings; it also brings libssl.
RUN export DEBIAN_FRONTEND=noninteractive \
 && apt-get update && apt-get install -y --no-install-recommends python3 \
 && apt-get install -y --no-install-recommends \
      "libpython$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin pyplaypen
USER pyplaypen
WORKDIR /tmp
ENTRYPOINT ["pyplaypen"]

FROM build AS test
RUN bash -euc 'source scripts/lib.sh; need_packages "${TEST_PACKAGES[@]}"; build release'
CMD ["bash", "-euc", "source scripts/lib.sh; run_tests release"]

# What is built when no target is named.
FROM command
