# What .ci/run and .ci/full share: steps with their times, what they install, and the table at the end. They source it.
set -euo pipefail
exec < /dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CI=true
# Tests whose component is missing fail instead of skipping.
export REQUIRE_COMPONENTS=1
export NO_COLOR=1
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
# Where programs are that are built or unpacked once, for all clones.
WATCHMUX_PEERS=$(node --input-type=module --eval 'console.log((await import("./test/peers/binary.mjs")).OUTPUT)')
export WATCHMUX_PEERS

reports=reports/ci
rm -rf "$reports"
mkdir -p "$reports" "$WATCHMUX_PEERS"

step_name=''
step_start=0
step_report=''
steps=()
jobs_running=()

# step NAME: ends the step before, and starts one.
step() {
  end_step
  step_name=$1
  step_start=$SECONDS
  step_report=''
  printf '\n=== %s\n' "$step_name"
}

end_step() {
  if [[ -n $step_name ]]; then steps+=("$((SECONDS - step_start))"$'\t'"$step_name"$'\t'"$step_report"); fi
  step_name=''
}

# in_background NAME COMMAND...: starts a command that gives way to all others; await NAME waits for it.
in_background() {
  local name=$1
  shift
  set -m # a process group of its own, so that it ends with all that it has started
  (
    renice -n 10 "$BASHPID" > /dev/null 2>&1 || true
    "$@"
  ) > "$reports/$name.txt" 2>&1 &
  set +m
  jobs_running+=("$name=$!")
}

await() {
  local name=$1 each
  for each in "${jobs_running[@]}"; do
    if [[ ${each%%=*} == "$name" ]]; then wait "${each#*=}" || { tail -n 40 "$reports/$name.txt"; exit 1; }; fi
  done
}

# tested NAME COMMAND...: runs vitest, by the given command, with a report for the table.
tested() {
  step_report=$1
  shift
  "$@" --reporter=default --reporter="$PWD/config/skipped-reporter.ts" --reporter=json --outputFile.json="$PWD/$reports/$step_report.json"
}

# Prints the steps, their seconds and tests, and the sum of all tests, even if a step has failed.
finish() {
  local code=$? each
  for each in "${jobs_running[@]}"; do kill -- "-${each#*=}" 2> /dev/null || true; done
  if ((code != 0)); then printf '\n!!! failed: %s\n' "${step_name:-before the first step}"; fi
  end_step
  printf '%s\n' "${steps[@]}" | node .ci/table.mjs "$reports" "$SECONDS" || true
  exit "$code"
}
trap finish EXIT

check_tools() {
  step 'node, npm, go and cargo'
  node --version
  npm --version
  node -e 'if (Number(process.versions.node.split(".")[0]) < 20) { console.error("Node 20 or newer is needed"); process.exit(1); }'
  if ! command -v go > /dev/null; then
    echo "Go 1.26 or newer is needed, and Debian's is older: see https://go.dev/doc/install" >&2
    exit 1
  fi
  go version
  if ! command -v cargo > /dev/null; then
    echo "Rust 1.95 or newer is needed, and Debian's is older: see https://rust-lang.org/tools/install" >&2
    exit 1
  fi
  cargo --version
}

# Chromium without a window: a page takes a third of the processor time there. .ci/full has the whole browser.
browsers=(chromium-headless-shell firefox-esr)
servers=(nginx haproxy nats-server)
# promtool and systemd-analyze.
tools=(prometheus systemd)

# Browsers, proxies, nats-server and what checks our files for operators, of Debian, and its kubectl.
install_programs() {
  local each
  if [[ ! -x /usr/bin/${browsers[0]} || ! -x /usr/bin/firefox-esr || ! -x /usr/sbin/nginx || ! -x /usr/sbin/haproxy || ! -x /usr/sbin/nats-server ||
    ! -x /usr/bin/promtool || ! -x /usr/bin/systemd-analyze ]]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${browsers[@]}" "${servers[@]}" "${tools[@]}"
  fi
  for each in "${browsers[@]}"; do
    if [[ ! -x /usr/bin/$each ]]; then
      echo "/usr/bin/$each is missing, and apt-get did not install it" >&2
      return 1
    fi
  done
  if [[ ! -x $WATCHMUX_PEERS/debian/usr/bin/kubectl && -z $(apt-cache madison kubernetes-client) ]]; then apt-get update -qq; fi
  node test/peers/debian.mjs
}

print_programs() {
  local each
  for each in "${browsers[@]}"; do "/usr/bin/$each" --version 2> /dev/null; done
  /usr/sbin/nginx -v
  /usr/sbin/haproxy -v | sed -n 1p # head would end first, and haproxy then fail
  /usr/sbin/nats-server --version
  /usr/bin/promtool --version | sed -n 1p
  /usr/bin/systemd-analyze --version | sed -n 1p
  "$(node test/peers/debian.mjs)" version --client --short
}

case $(uname -m) in
  x86_64) runtimes=(@oven/bun-linux-x64 @deno/linux-x64-glibc) ;;
  aarch64) runtimes=(@oven/bun-linux-aarch64 @deno/linux-arm64-glibc) ;;
  *) echo "there is no Bun and no Deno for $(uname -m)" >&2; exit 1 ;;
esac
bun_version=1.4.5
deno_version=2.9.6
runtimes_folder=$WATCHMUX_PEERS/runtimes-$bun_version-$deno_version
export WATCHMUX_BUN="$runtimes_folder/node_modules/${runtimes[0]}/bin/bun"
export WATCHMUX_DENO="$runtimes_folder/node_modules/${runtimes[1]}/deno"

install_runtimes() {
  if [[ ! -x $WATCHMUX_BUN || ! -x $WATCHMUX_DENO ]]; then
    local part
    part=$(mktemp -d -p "$WATCHMUX_PEERS")
    npm install --no-save --ignore-scripts --prefix "$part" "${runtimes[0]}@$bun_version" "${runtimes[1]}@$deno_version"
    rm -rf "$runtimes_folder"
    mv "$part" "$runtimes_folder"
  fi
  "$WATCHMUX_BUN" --version
  "$WATCHMUX_DENO" --version
}

# start_installing PEER...: everything that is not this package's own, while the first steps run: what is there already takes no time.
# Cloudflare's runtime.
workerd_version=1.20261117.1
workerd_folder=$WATCHMUX_PEERS/workerd-$workerd_version
case $(uname -m) in aarch64) workerd=workerd-linux-arm64 ;; *) workerd=workerd-linux-64 ;; esac
export WATCHMUX_WORKERD="$workerd_folder/node_modules/@cloudflare/$workerd/bin/workerd"

install_workerd() {
  if [[ ! -x $WATCHMUX_WORKERD ]]; then
    local part
    part=$(mktemp -d -p "$WATCHMUX_PEERS")
    npm install --no-save --ignore-scripts --prefix "$part" "@cloudflare/$workerd@$workerd_version"
    rm -rf "$workerd_folder"
    mv "$part" "$workerd_folder"
  fi
  "$WATCHMUX_WORKERD" --version
}

# Vue and Svelte.
frameworks_lock=test/frameworks/package-lock.json
WATCHMUX_FRAMEWORKS=$WATCHMUX_PEERS/frameworks-$(sha256sum "$frameworks_lock" | cut -c1-12)
export WATCHMUX_FRAMEWORKS

install_frameworks() {
  if [[ ! -d $WATCHMUX_FRAMEWORKS/node_modules/svelte ]]; then
    local part
    part=$(mktemp -d -p "$WATCHMUX_PEERS")
    cp test/frameworks/package.json "$frameworks_lock" "$part"
    npm ci --ignore-scripts --prefix "$part"
    rm -rf "$WATCHMUX_FRAMEWORKS"
    mv "$part" "$WATCHMUX_FRAMEWORKS"
  fi
}

start_installing() {
  in_background programs install_programs
  in_background runtimes install_runtimes
  in_background workerd install_workerd
  in_background frameworks install_frameworks
  # Four to nine minutes of both cores if nothing is cached, and ten more for all peers.
  in_background peers node test/peers/build.mjs "$@"
}

await_installed() {
  step 'browsers, proxies, nats-server, Bun, Deno'
  await programs
  await runtimes
  await workerd
  await frameworks
  print_programs
  tail -n 2 "$reports/runtimes.txt"
  tail -n 1 "$reports/workerd.txt"
  step 'kube-apiserver, kubectl, client-go and other peers'
  await peers
  grep '^/' "$reports/peers.txt"
}

build_package() {
  step 'npm ci'
  npm ci
  step 'build'
  npm run build
  step 'lint'
  npm run lint
}

use_package() {
  step "README's commands, after the npm ci above: npm run demo"
  npm run demo -- --seconds 2
  step 'size'
  npm run size
}
