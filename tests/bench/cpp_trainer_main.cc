// The C++ client as client_bench.py measures it, in a process of its own: for each number
// on standard input so many forwards, one after another, and then the seconds they took.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace planewise {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

int Run(const std::string& target, int64_t tokens, int64_t in, int64_t out, int buffers) {
  Client::Options options;
  options.target = target;
  options.token = "bench";
  const std::unique_ptr<Client> client = Must(Client::Connect(std::move(options)));
  const std::unique_ptr<ClientSession> session = Must(client->OpenSession());
  v1::Forward forward;
  forward.set_model("m");
  forward.set_layer("l");
  forward.set_step(1);
  forward.mutable_input()->set_data_type(v1::DATA_TYPE_BF16);
  forward.mutable_input()->add_shape(tokens);
  forward.mutable_input()->add_shape(in);
  // Written, so that every page is real.
  const std::vector<std::string> inputs(buffers, std::string(tokens * in * 2, '\x3c'));
  std::vector<std::string> outputs(buffers, std::string(tokens * out * 2, '\x3c'));

  for (int count = 0; std::cin >> count;) {
    const absl::Time begin = absl::Now();
    for (int i = 0; i < count; ++i) {
      Must(session->Forward(forward, inputs[i % buffers], absl::MakeSpan(outputs[i % buffers])));
    }
    std::printf("%.9f\n", absl::ToDoubleSeconds(absl::Now() - begin));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) {
  std::string target;
  int64_t tokens = 0;
  int64_t in = 0;
  int64_t out = 0;
  int buffers = 1;
  CLI::App app("Forwards of layer \"l\" of model \"m\" with X [tokens, in] in BF16.",
               "cpp_trainer_main");
  app.add_option("--target", target)->required();
  app.add_option("--tokens", tokens)->required();
  app.add_option("--in", in)->required();
  app.add_option("--out", out)->required();
  app.add_option("--buffers", buffers, "tensors of each kind, used in turn");
  CLI11_PARSE(app, argc, argv);
  return planewise::Run(target, tokens, in, out, buffers);
}
