#ifndef PLANEWISE_TESTS_SIM_SIM_TRAINER_H_
#define PLANEWISE_TESTS_SIM_SIM_TRAINER_H_
// A trainer that works by chance: forwards, backwards by handle and with X sent
// again, handles that are released or dropped, steps. It uses the client
// library's own session logic and holds every answer against the oracle.
//
// What it checks of each answer: the bytes, the version, that a step keeps its
// version, that handles are numbered without a gap (an operation that ran twice
// would leave one), that a consumed handle is gone, and that a failure has a
// reason that the simulation can have caused.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/cpp/session_client.h"
#include "tests/sim/sim_daemon.h"
#include "tests/sim/sim_link.h"
#include "tests/sim/sim_oracle.h"
#include "tests/sim/sim_random.h"

namespace planewise {

// Every version that was ever published of a model.
using VersionHistory = std::map<uint64_t, std::shared_ptr<const ModelVersion>>;

struct TrainerOptions {
  std::string model;
  LinkFaults faults;
  int64_t tokens_max = 5;
  int64_t operations_in_flight_max = 6;
};

// One thread.
class SimTrainer {
 public:
  // All outlive it.
  SimTrainer(SimDaemon& daemon, SimOracle& oracle, const VersionHistory& history,
             SimRandom& random, TrainerOptions options);
  ~SimTrainer();

  // Something of the trainer, its client or its stream; false if nothing is to do.
  bool Step();
  // No new work: ends the step and closes the session.
  void Finish() { finishing_ = true; }
  bool finished() const { return vanished_ || (finishing_ && client_->ended() && closed_); }
  // Never heard of again.
  void Vanish();
  bool vanished() const { return vanished_; }
  void Stall(bool stalled) {
    if (link_ != nullptr) link_->Stall(stalled);
  }

  absl::Time next_deadline() const;
  int64_t forwards_done() const { return forwards_done_; }
  int64_t backwards_done() const { return backwards_done_; }
  int64_t failures() const { return failures_; }
  int64_t sessions_begun() const { return sessions_begun_; }

 private:
  enum class Kind { kForward, kBackward, kEndStep, kRelease };

  // A forward whose operand the daemon may have.
  struct SavedForward {
    uint64_t handle = 0;  // 0: X is to be sent again
    OracleCall call;      // layer of `version`
    std::shared_ptr<const ModelVersion> version;
    std::string layer;
    std::string x;
    uint64_t step = 0;
  };

  struct Work {
    Kind kind = Kind::kForward;
    v1::Operation operation;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    SavedForward forward;      // of a backward
    LinearGradients wanted;
    bool must_be_evicted = false;
  };

  void BeginSession();
  bool Drive();
  bool SubmitSomething();
  void SubmitForward();
  void SubmitBackward(bool resent);
  void SubmitRelease();
  void SubmitConsumedHandle();
  void SubmitEndStep();
  void Submit(Work work);

  void OnCompletion(const SessionClient::Completion& completion);
  void CheckForward(Work& work, const v1::ForwardResult& result);
  void CheckBackward(const Work& work, const v1::BackwardResult& result);
  void CheckFailure(const Work& work, const absl::Status& status);

  std::string RandomBytes(DType dtype, int64_t elements);

  SimDaemon& daemon_;
  SimOracle& oracle_;
  const VersionHistory& history_;
  SimRandom& random_;
  const TrainerOptions options_;
  std::vector<std::string> layers_;

  std::unique_ptr<SessionClient> client_;
  std::unique_ptr<SimLink> link_;
  std::map<OperationId, std::unique_ptr<Work>> pending_;
  std::deque<SavedForward> saved_;
  std::vector<uint64_t> consumed_;
  uint64_t next_handle_ = 1;
  uint64_t step_ = 1;
  std::map<uint64_t, uint64_t> version_of_step_;
  bool finishing_ = false;
  bool closed_ = false;
  bool vanished_ = false;
  int64_t forwards_done_ = 0;
  int64_t backwards_done_ = 0;
  int64_t failures_ = 0;
  int64_t sessions_begun_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIM_TRAINER_H_
