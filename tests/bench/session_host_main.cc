// A process that hosts sessions with a compute that costs nothing, for clients in
// processes of their own (client_bench.py). Prints where it listens, and ends with its
// standard input.
#include <cstdint>
#include <cstdio>
#include <iostream>

#include "CLI/CLI.hpp"
#include "service/session/session_limits.h"
#include "tests/bench/session_host.h"

int main(int argc, char** argv) {
  int64_t out = 0;
  int64_t in = 0;
  CLI::App app("Hosts layer \"l\" [out, in] of model \"m\".", "session_host_main");
  app.add_option("--out", out)->required();
  app.add_option("--in", in)->required();
  CLI11_PARSE(app, argc, argv);
  const planewise::SessionHost host("127.0.0.1:0", planewise::SessionLimits{}, out, in);
  std::printf("127.0.0.1:%d\n", host.port());
  std::fflush(stdout);
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
  return 0;
}
