#include "tests/sim/simulation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

const std::string kModel = "m";
const std::string kOtherModel = "other";

// The largest operation of a trainer: X and dY of 5 tokens, 128 features in F32;
// dX, dW [128, 64] and dbias.
constexpr int64_t kInputBytesMax = 2 * 5 * 128 * 4;
constexpr int64_t kResultBytesMax = 5 * 128 * 4 + 128 * 64 * 4 + 128 * 4;

}  // namespace

SessionLimits SmallLimits() {
  SessionLimits limits;
  limits.input_window_bytes = 3000;
  limits.result_budget_bytes = 2500;
  limits.chunk_bytes_max = 256;
  limits.copied_at_once_bytes_max = 64;
  limits.timeout = absl::Minutes(3);
  // Longer than the client's patience: it says everything again before that.
  limits.gap_timeout = absl::Minutes(1);
  return limits;
}

Simulation::Simulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), daemon_(limits_, random_) {
  idle_bytes_ = daemon_.budget().used_bytes();
  daemon_.WriteModel(kModel, options.seed);
  daemon_.WriteModel(kOtherModel, options.seed + 1);
  daemon_.Host(kModel, /*trainable=*/true,
               [](const absl::StatusOr<ModelDescription>& model) { PW_ASSERT_OK(model); });
  daemon_.Settle();
  RecordVersion();
  for (int i = 0; i < options.trainers; ++i) {
    TrainerOptions trainer;
    trainer.model = kModel;
    trainer.faults = options.faults;
    trainers_.push_back(
        std::make_unique<SimTrainer>(daemon_, oracle_, history_, random_, std::move(trainer)));
  }
}

Simulation::~Simulation() = default;

void Simulation::RecordVersion() {
  const std::shared_ptr<const ModelVersion> newest = daemon_.catalog().Describe(kModel)->version;
  history_[newest->version.value()] = newest;
}

SimulationCounts Simulation::Run() {
  for (int64_t i = 0; i < options_.steps; ++i) {
    if (options_.one_vanishes && i == options_.steps / 2) trainers_.front()->Vanish();
    if (options_.operator_at_work && random_.OneIn(200)) Operate();
    if (random_.OneIn(300)) StallOrResume();
    if (!Step()) AdvanceTime();
    if (i % 16 == 0) {
      CheckMemory();
      // Work takes time, so that leases grow old.
      daemon_.executor().AdvanceTo(daemon_.clock().Now() + absl::Milliseconds(10));
    }
    if (::testing::Test::HasFailure()) return counts_;
  }
  FinishTrainers();
  if (!::testing::Test::HasFailure()) CheckNothingIsLeft();
  for (const auto& trainer : trainers_) {
    counts_.forwards += trainer->forwards_done();
    counts_.backwards += trainer->backwards_done();
    counts_.failures += trainer->failures();
    counts_.sessions += trainer->sessions_begun();
  }
  return counts_;
}

// One step of somebody; false if nobody has anything to do.
bool Simulation::Step() {
  const auto actors = static_cast<int64_t>(trainers_.size()) + 1;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const int64_t actor = random_.Below(actors);
    if (actor == 0 ? daemon_.Step() : trainers_[actor - 1]->Step()) return true;
  }
  return AnyStep();
}

bool Simulation::AnyStep() {
  if (daemon_.Step()) return true;
  return std::any_of(trainers_.begin(), trainers_.end(),
                     [](const auto& trainer) { return trainer->Step(); });
}

void Simulation::AdvanceTime() {
  absl::Time next = daemon_.executor().next_timer();
  for (const auto& trainer : trainers_) next = std::min(next, trainer->next_deadline());
  ASSERT_NE(next, absl::InfiniteFuture()) << "nothing will ever happen again";
  daemon_.executor().AdvanceTo(std::max(next, daemon_.clock().Now() + absl::Milliseconds(1)));
}

void Simulation::Operate() {
  switch (random_.Below(5)) {
    case 0:
    case 1:
      return SwitchByChance();
    case 4:
      return CreateOrDelete();
    case 2:
      daemon_.catalog().Save(daemon_.principal(), kModel, "", nullptr,
                             [this](absl::StatusOr<SaveOutcome> outcome) {
                               if (outcome.ok()) {
                                 ++counts_.saves;
                               } else {
                                 EXPECT_THAT(outcome, HasReason(Reason::kModelBusy));
                               }
                             });
      return;
    case 3:
      daemon_.catalog().Verify(daemon_.principal(), kModel, nullptr,
                               [this](absl::StatusOr<VerifyOutcome> outcome) {
                                 PW_ASSERT_OK(outcome);
                                 EXPECT_TRUE(outcome->ok) << outcome->findings.front();
                                 ++counts_.verifies;
                               });
      return;
  }
}

// Another model comes and goes while all work. A delete may meet its load.
void Simulation::CreateOrDelete() {
  if (!other_asked_for_) {
    other_asked_for_ = true;
    daemon_.Host(kOtherModel, /*trainable=*/false,
                 [this](const absl::StatusOr<ModelDescription>& model) {
                   PW_ASSERT_OK(model);
                   EXPECT_EQ(model->planned_bytes, model->actual_bytes);
                   ++counts_.loads;
                 });
    return;
  }
  DeleteModelSpec spec;
  spec.name = kOtherModel;
  daemon_.catalog().Delete(daemon_.principal(), spec,
                           [this](const absl::StatusOr<DeleteOutcome>& outcome) {
                             if (!outcome.ok()) {
                               EXPECT_THAT(outcome, testing::AnyOf(HasReason(Reason::kModelBusy),
                                                                   HasReason(Reason::kNotFound)))
                                   << "it loads, or another delete was first";
                               return;
                             }
                             other_asked_for_ = false;
                             ++counts_.deletes;
                           });
}

// To any override, with or without a release; what may refuse it is known.
void Simulation::SwitchByChance() {
  SwitchSpec spec;
  spec.name = kModel;
  spec.target = DefaultRecipe(Format::kMxfp8);
  spec.target.backward_override = static_cast<BackwardOverride>(random_.Below(3));
  spec.release_unused_planes = random_.OneIn(30);
  const auto validation =
      daemon_.catalog().Validate(kModel, {spec.target, spec.release_unused_planes});
  PW_ASSERT_OK(validation);
  spec.fingerprint = validation->validation.fingerprint;
  const bool allowed = validation->validation.runs();
  daemon_.catalog().Switch(
      daemon_.principal(), std::move(spec),
      [this, allowed](absl::StatusOr<SwitchOutcome> outcome) {
        if (outcome.ok()) {
          EXPECT_TRUE(allowed);
          ++counts_.switches;
          return RecordVersion();
        }
        ++counts_.refused_switches;
        const std::set<Reason> known = {Reason::kModelBusy, Reason::kColumnwiseMissing,
                                        Reason::kOperandsOutstanding, Reason::kQuotaExceeded};
        EXPECT_TRUE(known.contains(*ReasonOf(outcome.status()))) << outcome.status();
      });
}

void Simulation::CheckMemory() {
  // What is on its way to a client is lent: at most one more result.
  const int64_t per_session = limits_.input_window_bytes + limits_.result_budget_bytes +
                              kInputBytesMax + 2 * kResultBytesMax;
  ASSERT_LE(daemon_.budget().used_bytes(MemoryUse::kTransport),
            per_session * std::max(1, daemon_.sessions().session_count()));
}

// A trainer reads nothing for a while. (Its client's patience may end first.)
void Simulation::StallOrResume() {
  const bool stalls = random_.OneIn(2);
  trainers_[random_.Below(static_cast<int64_t>(trainers_.size()))]->Stall(stalls);
  if (stalls) ++counts_.stalls;
}

void Simulation::FinishTrainers() {
  for (const auto& trainer : trainers_) {
    trainer->Stall(false);
    trainer->Finish();
  }
  const auto finished = [this] {
    return std::all_of(trainers_.begin(), trainers_.end(),
                       [](const auto& trainer) { return trainer->finished(); });
  };
  for (int64_t i = 0; !finished(); ++i) {
    ASSERT_LT(i, 1000000) << "a trainer never finishes";
    if (!Step()) AdvanceTime();
    if (::testing::Test::HasFailure()) return;
  }
}

void Simulation::CheckNothingIsLeft() {
  for (const auto& trainer : trainers_) trainer->Vanish();
  daemon_.executor().RunFor(limits_.timeout + absl::Seconds(1));
  daemon_.Settle();
  EXPECT_EQ(daemon_.sessions().session_count(), 0);
  if (other_asked_for_) {
    CreateOrDelete();
    daemon_.Settle();
  }
  const ModelDescription model = *daemon_.catalog().Describe(kModel);
  EXPECT_EQ(model.lease_count, 0);
  EXPECT_EQ(model.planned_bytes, model.actual_bytes);
  history_.clear();
  for (const MemoryUse use :
       {MemoryUse::kSavedOperands, MemoryUse::kTransport}) {
    EXPECT_EQ(daemon_.budget().used_bytes(use), 0) << Name(use);
  }
  EXPECT_EQ(daemon_.budget().used_bytes(), idle_bytes_ + model.actual_bytes);
}

}  // namespace planewise
