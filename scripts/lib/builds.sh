# shellcheck shell=bash
# How each part is built; every function does nothing when its inputs have not changed. Sourced, never run.

HELP_VENV=${HELP_VENV:-$THALWEG_ROOT/.thalweg/help-venv}

# build_engine TREE TARGET... : TREE is release, address or thread. The address tree also checks undefined behaviour and
# holds the fuzzers. Both sanitizer trees are clang's: half of gcc's time for the same checks, and a second opinion.
build_engine() {
  local tree=$1 directory=$THALWEG_BUILD/$1
  shift
  local options=()
  case $tree in
    release) options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo) ;;
    address) options=(-DTHALWEG_SANITIZER=address -DTHALWEG_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19) ;;
    thread) options=(-DTHALWEG_SANITIZER=thread -DCMAKE_CXX_COMPILER=clang++-19) ;;
    *) echo "unknown build tree '$tree'"; return 1 ;;
  esac
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    # Precompiled headers, and the same source in another folder, come from the cache too.
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    export CCACHE_BASEDIR=$THALWEG_ROOT CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
  fi
  mkdir -p "$THALWEG_BUILD"
  (
    flock 9 # one at a time for each tree: suites run side by side
    # A tree that was configured otherwise (an older checkout, another compiler) starts afresh.
    if [[ ! -f $directory/build.ninja || $(cat "$directory/.options" 2>/dev/null) != "${options[*]}" ]]; then
      rm -rf "$directory"
      cmake -G Ninja -S "$THALWEG_ROOT/engine" -B "$directory" "${options[@]}"
      printf '%s\n' "${options[*]}" >"$directory/.options"
    fi
    nice ninja -C "$directory" -j "$THALWEG_JOBS" "$@"
  ) 9>"$THALWEG_BUILD/.$tree.lock"
}

# Prints one hash over the contents and names of files: sources_hash DIRECTORY FIND-EXPRESSION...
sources_hash() {
  local directory=$1
  shift
  (cd "$directory" && find . "$@" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
}

# The libraries that run inside database servers: the extension thalweg_datalayer of destinations and the output plugin thalweg_output of
# sources.
build_server_libraries() {
  build_server_library datalayer thalweg_datalayer
  build_server_library outputplugin thalweg_output
}

# build_server_library FOLDER LIBRARY : built for and installed into the server of THALWEG_PG_BIN. A server without its
# headers does without: apply writes in SQL then, and pgoutput decodes.
build_server_library() {
  local pg_config=$THALWEG_PG_BIN/pg_config source=$THALWEG_ROOT/engine/$1 directory=$THALWEG_BUILD/$1
  local wanted installed
  if [[ ! -f $("$pg_config" --pgxs 2>/dev/null) ]]; then
    echo "note: $THALWEG_PG_BIN has no headers: without $2"
    return 0
  fi
  installed=$("$pg_config" --pkglibdir)/$2.so
  wanted="$("$pg_config" --version) $(sources_hash "$source" \( -name '*.o' -o -name '*.so' \) -prune -o)"
  if [[ -f $installed && $(cat "$directory/.sources" 2>/dev/null) == "$wanted $(sha256sum <"$installed")" ]]; then
    return 0
  fi
  rm -rf "$directory"
  cp -r "$source" "$directory"
  make -s -C "$directory" PG_CONFIG="$pg_config" clean all
  as_root make -s -C "$directory" PG_CONFIG="$pg_config" install
  printf '%s %s\n' "$wanted" "$(sha256sum <"$installed")" >"$directory/.sources"
}

# Debian's Python: one of root's own (pyenv's under /root, say) is out of reach of the services' users.
system_python() {
  if [[ -x /usr/bin/python3 ]] && /usr/bin/python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo /usr/bin/python3
  else
    command -v python3
  fi
}

# The virtual environment: the locked packages, then the backend itself as a link to its source, compiled.
build_venv() {
  local lock=$THALWEG_ROOT/backend/${THALWEG_LOCK:-requirements.lock} stamp=$THALWEG_VENV/.lock wanted python
  python=$(system_python)
  wanted="$(sha256sum <"$lock") $python"
  if [[ ! -x $THALWEG_VENV/bin/python ]] || ! "$THALWEG_VENV/bin/python" -c 'import sys' ||
    ! grep -q "^home = ${python%/*}$" "$THALWEG_VENV/pyvenv.cfg"; then
    rm -rf "$THALWEG_VENV"
    "$python" -m venv "$THALWEG_VENV"
  fi
  if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
    "$THALWEG_VENV/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    printf '%s\n' "$wanted" >"$stamp"
  fi
  "$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/link_backend.py" "$THALWEG_ROOT/backend"
  # The services' users cannot write beside the sources.
  "$THALWEG_VENV/bin/python" -m compileall -q "$THALWEG_ROOT/backend/thalweg"
}

install_node_modules() {
  local directory=$1 stamp=$1/node_modules/.lock wanted
  wanted=$(sha256sum <"$directory/package-lock.json")
  (
    flock 9 # suites that run beside each other want the same modules
    if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
      (cd "$directory" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund)
      printf '%s\n' "$wanted" >"$stamp"
    fi
  ) 9<"$directory/package-lock.json"
}

build_console() {
  local directory=$THALWEG_ROOT/frontend
  mkdir -p "$THALWEG_BUILD"
  (
    flock 9 # the console's tests build it beside other suites
    wanted=$(sources_hash "$directory" \( -name node_modules -o -name dist -o -name coverage \) -prune -o)
    [[ $(cat "$directory/dist/.sources" 2>/dev/null) != "$wanted" ]] || exit 0
    use_node && install_node_modules "$directory" && (cd "$directory" && npm run build) &&
      printf '%s\n' "$wanted" >"$directory/dist/.sources"
  ) 9>"$THALWEG_BUILD/.console.lock"
}

# The hash of all sources of the help.
help_sources() {
  sources_hash "$THALWEG_ROOT" \( -name '.[a-z]*' -o -name node_modules -o -path ./build -o -path ./frontend/dist \) -prune \
    -o \( -name '*.md' -o -path './docs/*' -o -path './scripts/help/*.*' -o -name favicon.svg \)
}

# The virtual environment of the help's generator: apart, so that the product's stays small.
build_help_venv() {
  local lock=$THALWEG_ROOT/scripts/help/requirements.lock wanted python
  python=$(system_python)
  wanted="$(sha256sum <"$lock") $python"
  if [[ $(cat "$HELP_VENV/.lock" 2>/dev/null) != "$wanted" ]]; then
    rm -rf "$HELP_VENV"
    "$python" -m venv "$HELP_VENV" &&
      "$HELP_VENV/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$lock" &&
      printf '%s\n' "$wanted" >"$HELP_VENV/.lock"
  fi
}

# The documentation as a searchable site, into $THALWEG_BUILD/help. Lint calls it where bash does not stop at a failure.
build_help() {
  mkdir -p "$THALWEG_BUILD"
  (
    flock 9 # the static checks build it beside other suites
    wanted=$(help_sources)
    [[ $(cat "$THALWEG_BUILD/help/.sources" 2>/dev/null) != "$wanted" ]] || exit 0
    build_help_venv &&
      "$HELP_VENV/bin/python" "$THALWEG_ROOT/scripts/help/build.py" "$THALWEG_BUILD/help" &&
      printf '%s\n' "$wanted" >"$THALWEG_BUILD/help/.sources"
  ) 9>"$THALWEG_BUILD/.help.lock"
}

# The page that measures the console's chart, into $THALWEG_BUILD/charts.
build_chart_page() {
  use_node
  install_node_modules "$THALWEG_ROOT/frontend"
  (cd "$THALWEG_ROOT/frontend" &&
    npx vite build --config bench/vite.config.ts --outDir "$THALWEG_BUILD/charts" --emptyOutDir --logLevel warn)
}
