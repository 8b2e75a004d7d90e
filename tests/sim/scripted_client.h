#ifndef PLANEWISE_TESTS_SIM_SCRIPTED_CLIENT_H_
#define PLANEWISE_TESTS_SIM_SCRIPTED_CLIENT_H_
// A session that does what a test tells it, one operation after another, over
// the client library's session logic and a simulated link. Model "m" has one
// layer of small integers, so every result is exact.
//
// Not here: work by chance (sim_trainer.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/session_client.h"
#include "service/compute/fake_linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/session/session_table.h"
#include "service/weights/fake_lease_source.h"
#include "tests/sim/sim_link.h"
#include "tests/sim/sim_random.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"

namespace planewise {

// One thread. Daemon and client in one.
class ScriptedClient {
 public:
  static constexpr int64_t kTokens = 2;
  static constexpr int64_t kOut = 4;
  static constexpr int64_t kIn = 8;

  // `judge` decides on every frame that its stream carries.
  explicit ScriptedClient(FrameJudge judge);
  ~ScriptedClient();

  // An answer and its bytes as floats, tensor by tensor.
  struct Answer {
    v1::OperationResult result;
    std::vector<std::vector<float>> tensors;
  };

  // Each runs until the answer is there.
  absl::StatusOr<Answer> Forward(const std::vector<float>& x, bool save, uint64_t step = 1);
  absl::StatusOr<Answer> Backward(uint64_t handle, const std::vector<float>& dy);
  absl::StatusOr<Answer> Release(const std::vector<uint64_t>& handles);
  absl::StatusOr<Answer> EndStep(uint64_t step);
  void Close();

  // Breaks the stream as soon as the client has read what came.
  void BreakStreamNext() { break_next_ = true; }

  const HostedLayer& layer() const { return version_->layers.front(); }
  const FakeLinearCompute& compute() const { return compute_; }
  const MemoryBudget& budget() const { return *budget_; }
  int session_count() const { return table_.session_count(); }
  int lease_count() { return models_.versions("m").lease_count(); }
  int64_t weights_bytes() const { return weights_bytes_; }

 private:
  absl::StatusOr<Answer> Run(v1::Operation operation, std::vector<std::vector<float>> inputs,
                             std::vector<size_t> output_elements);
  void Drive();

  SimRandom random_{1};
  SimClock clock_;
  SimExecutor executor_{clock_};
  SimBackgroundRunner runner_{executor_};
  FakeLinearCompute compute_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 20);
  LinearExecutor linear_{compute_, runner_, budget_};
  std::shared_ptr<ModelVersion> version_;
  int64_t weights_bytes_ = 0;
  FakeLeaseSource models_{clock_};
  SessionTable table_;
  SessionClient client_;
  const FrameJudge judge_;
  std::unique_ptr<SimLink> link_;
  bool break_next_ = false;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SCRIPTED_CLIENT_H_
