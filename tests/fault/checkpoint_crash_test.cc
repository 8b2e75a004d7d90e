// The store, stopped or failed at every single file operation. Invariants of
// core/checkpoint/FORMAT.md, "Promises":
//  1. After recovery every model is at a version that was acknowledged, or at
//     the one whose save was under way: whole, never a mixture.
//  2. What was acknowledged before the fault is there.
//  3. Other models are untouched.
//  4. No version number is given out twice.
//  5. Nothing of an interrupted save or delete is left on the disk.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/checkpoint/model_store.h"
#include "core/checkpoint/store_test_model.h"
#include "gmock/gmock.h"
#include "tests/testing/fault_file_system.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// How the machine finds its disk after a fault.
struct Aftermath {
  const char* name;
  Unsynced unsynced;
  uint64_t seed_offset;
};

const Aftermath kAftermaths[] = {
    {"all that was not synced is lost", Unsynced::kLost, 0},
    {"all is kept", Unsynced::kKept, 0},
    {"torn", Unsynced::kTorn, 1},
    {"torn otherwise", Unsynced::kTorn, 2},
};

struct Kind {
  const char* name;
  Fault fault;
};

const Kind kKinds[] = {
    {"crash", Fault::kCrash},           {"torn crash", Fault::kTornCrash},
    {"error", Fault::kError},           {"late error", Fault::kLateError},
    {"disk full", Fault::kFull},
};

// What the test knows of model "a", besides what the store says.
struct Ledger {
  std::optional<std::string> acknowledged;  // content; nullopt: not stored
  std::optional<std::string> under_way;     // the outcome of a call that failed
  bool call_under_way = false;
  uint64_t highest_version = 0;             // of any number given out
};

class CheckpointCrashTest : public testing::Test {
 protected:
  const ModelVersion& Model(const std::string& name, uint64_t version) {
    const auto [model, is_new] = models_.try_emplace({name, version});
    if (is_new) model->second = MakeTestModel(name, WeightVersion(version), version, *budget_);
    return model->second;
  }

  std::string ContentOfVersion(uint64_t version) { return ContentOf(Model("a", version)); }

  absl::StatusOr<std::unique_ptr<ModelStore>> Open(FileSystem& fs) {
    return ModelStore::Open(fs, "/s", StoreAccess::kReadWrite);
  }

  // A number for the next version, as the service takes it; 0 if that failed.
  uint64_t Reserve(ModelStore& store, Ledger& ledger) {
    const absl::StatusOr<WeightVersion> reserved = store.ReserveVersions(1);
    if (!reserved.ok()) return 0;
    EXPECT_GT(reserved->value(), ledger.highest_version) << "invariant 4";
    return ledger.highest_version = reserved->value();
  }

  // Saves a new version of "a". OK only if all went well.
  absl::Status Save(ModelStore& store, Ledger& ledger) {
    const uint64_t version = Reserve(store, ledger);
    if (version == 0) return absl::UnavailableError("no number");
    ledger.under_way = ContentOfVersion(version);
    ledger.call_under_way = true;
    const absl::Status saved = store.Save(Model("a", version), {}, {}).status();
    if (saved.ok()) {
      ledger.acknowledged = ledger.under_way;
      ledger.call_under_way = false;
    }
    return saved;
  }

  void Delete(ModelStore& store, Ledger& ledger) {
    ledger.under_way = std::nullopt;
    ledger.call_under_way = true;
    if (store.Delete("a").ok()) {
      ledger.acknowledged = std::nullopt;
      ledger.call_under_way = false;
    }
  }

  // The content of "a" as the store loads it; nullopt if it has none.
  std::optional<std::string> Load(ModelStore& store) {
    const absl::StatusOr<ModelVersion> loaded = store.Load("a", *budget_, {});
    if (ReasonOf(loaded.status()) == Reason::kNotFound) return std::nullopt;
    PW_EXPECT_OK(loaded);
    return loaded.ok() ? ContentOf(*loaded) : "damaged";
  }

  static bool IsAllowed(const std::optional<std::string>& content, const Ledger& ledger) {
    return content == ledger.acknowledged || (ledger.call_under_way && content == ledger.under_way);
  }

  // Opens what the fault left and checks the invariants.
  void CheckAfterRecovery(FileSystem& fs, Ledger ledger, bool other_exists) {
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelStore> store, Open(fs));
    const std::optional<std::string> content = Load(*store);
    EXPECT_TRUE(IsAllowed(content, ledger))
        << "invariant 1 or 2; found " << content.value_or("nothing") << "; acknowledged "
        << ledger.acknowledged.value_or("nothing");
    if (other_exists) {
      PW_ASSERT_OK_AND_ASSIGN(const ModelVersion other, store->Load("b", *budget_, {}));
      EXPECT_EQ(ContentOf(other), ContentOf(Model("b", 2))) << "invariant 3";
    }
    CheckNothingLeft(fs, *store);
    PW_ASSERT_OK(Save(*store, ledger));  // It works again.
    EXPECT_EQ(Load(*store), ledger.acknowledged);
  }

  // Invariant 5: below models/ there is what manifests name, and nothing else.
  void CheckNothingLeft(FileSystem& fs, ModelStore& store) {
    std::vector<std::string> stored;
    for (const StoredModel& model : store.List()) stored.push_back(model.name);
    EXPECT_THAT(fs.List("/s/models"), IsOkAndHolds(testing::ElementsAreArray(stored)));
    for (const StoredModel& model : store.List()) {
      const std::string directory = "/s/models/" + model.name;
      EXPECT_THAT(fs.List(directory),
                  IsOkAndHolds(testing::ElementsAre("CURRENT", "manifests", "segments")));
      for (const char* part : {"/manifests", "/segments"}) {
        PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, fs.List(directory + part));
        for (const std::string& name : names) {
          EXPECT_FALSE(absl::EndsWith(name, ".tmp")) << name;
          EXPECT_LE(name.substr(0, 20), absl::StrFormat("%020d", model.version.value())) << name;
        }
      }
    }
  }

  // Runs `prepare` without and `act` with a fault at its n-th operation, for
  // every n, kind and aftermath, and checks what is left.
  void ForEveryFault(const std::function<void(FileSystem&, Ledger&)>& prepare,
                     const std::function<void(FileSystem&, Ledger&)>& act, bool other_exists) {
    for (const Kind& kind : kKinds) {
      for (const Aftermath& aftermath : kAftermaths) {
        bool reached = true;
        int64_t n = 0;
        for (; reached; ++n) {
          MemoryFileSystem memory;
          FaultFileSystem faults(memory);
          Ledger ledger;
          prepare(memory, ledger);
          faults.FailAfter(n, kind.fault);
          act(faults, ledger);
          reached = faults.failed();
          SCOPED_TRACE(absl::StrCat(kind.name, " at operation ", n, ", ",
                                    faults.failed_operation(), "; then ", aftermath.name));
          memory.Crash(aftermath.unsynced, TestSeed() + aftermath.seed_offset);
          CheckAfterRecovery(memory, ledger, other_exists);
          if (HasFailure()) return;
        }
        EXPECT_GT(n, kind.fault == Fault::kFull ? 4 : 10) << kind.name;
      }
    }
  }

  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
  std::map<std::pair<std::string, uint64_t>, ModelVersion> models_;
};

TEST_F(CheckpointCrashTest, TheVeryFirstSave) {
  ForEveryFault([](FileSystem&, Ledger&) {},
                [this](FileSystem& fs, Ledger& ledger) {
                  const auto store = Open(fs);
                  if (store.ok()) Save(**store, ledger).IgnoreError();
                },
                /*other_exists=*/false);
}

// Model "a" at version 1 and "b" at version 2.
class StoredModelCrashTest : public CheckpointCrashTest {
 protected:
  void Prepare(FileSystem& fs, Ledger& ledger) {
    const std::unique_ptr<ModelStore> store = Open(fs).value();
    PW_ASSERT_OK(Save(*store, ledger));
    ASSERT_EQ(Reserve(*store, ledger), 2u);
    PW_ASSERT_OK(store->Save(Model("b", 2), {}, {}));
  }
  void ForEveryFaultOf(const std::function<void(ModelStore&, Ledger&)>& act) {
    ForEveryFault([this](FileSystem& fs, Ledger& ledger) { Prepare(fs, ledger); },
                  [&](FileSystem& fs, Ledger& ledger) {
                    const auto store = Open(fs);
                    if (store.ok()) act(**store, ledger);
                  },
                  /*other_exists=*/true);
  }
};

TEST_F(StoredModelCrashTest, ANewerVersion) {
  ForEveryFaultOf([this](ModelStore& store, Ledger& ledger) { Save(store, ledger).IgnoreError(); });
}

TEST_F(StoredModelCrashTest, ADelete) {
  ForEveryFaultOf([this](ModelStore& store, Ledger& ledger) { Delete(store, ledger); });
}

TEST_F(StoredModelCrashTest, AReservation) {
  ForEveryFaultOf([](ModelStore& store, Ledger& ledger) {
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<WeightVersion> reserved = store.ReserveVersions(5);
      if (!reserved.ok()) return;
      EXPECT_GT(reserved->value(), ledger.highest_version);
      ledger.highest_version = reserved->value() + 4;
    }
  });
}

// A save that failed and one after it, in one process: either succeeds and is
// durable, or the store says that it is read-only.
TEST_F(StoredModelCrashTest, ASaveAfterAFailedOne) {
  ForEveryFaultOf([this](ModelStore& store, Ledger& ledger) {
    if (Save(store, ledger).ok()) return;
    // The first failed: what was durable can be read, if the disk lets it.
    const absl::StatusOr<ModelVersion> old = store.Load("a", *budget_, {});
    if (old.ok()) {
      EXPECT_EQ(ContentOf(*old), *ledger.acknowledged);
    }
    Save(store, ledger).IgnoreError();
  });
}

// The sweep of a store that was interrupted before, interrupted.
TEST_F(StoredModelCrashTest, ARecovery) {
  for (const int64_t interrupted_at : {14, 28, 42}) {
    ForEveryFault(
        [&](FileSystem& fs, Ledger& ledger) {
          Prepare(fs, ledger);
          FaultFileSystem faults(fs);
          const std::unique_ptr<ModelStore> store = Open(faults).value();
          faults.FailAfter(interrupted_at, Fault::kCrash);
          EXPECT_FALSE(Save(*store, ledger).ok());
          ASSERT_TRUE(faults.failed());
        },
        [this](FileSystem& fs, Ledger&) { (void)Open(fs); }, /*other_exists=*/true);
  }
}

// A failed sync may have lost bytes that were accepted before: nothing is
// written any more, whoever asks, until the store is opened again.
TEST_F(StoredModelCrashTest, AFailedSyncMakesTheStoreReadOnly) {
  int64_t failed_syncs = 0;
  bool reached = true;
  for (int64_t n = 0; reached && !HasFailure(); ++n) {
    MemoryFileSystem memory;
    FaultFileSystem faults(memory);
    Ledger ledger;
    Prepare(memory, ledger);
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelStore> store, Open(faults));
    faults.FailAfter(n, Fault::kError);
    const absl::Status first = store->Save(Model("a", 3), {}, {}).status();
    reached = faults.failed();
    if (!absl::StartsWith(faults.failed_operation(), "sync") &&
        !absl::StartsWith(faults.failed_operation(), "rename")) {
      continue;
    }
    ++failed_syncs;
    SCOPED_TRACE(faults.failed_operation());
    EXPECT_THAT(first, HasReason(Reason::kStoreReadOnly, testing::HasSubstr("until a restart")));
    EXPECT_THAT(store->Save(Model("c", 4), {}, {}), HasReason(Reason::kStoreReadOnly));
    EXPECT_THAT(store->Delete("b"), HasReason(Reason::kStoreReadOnly));
    EXPECT_THAT(store->ReserveVersions(1), HasReason(Reason::kStoreReadOnly));
    PW_EXPECT_OK(store->Load("b", *budget_, {}));
    PW_EXPECT_OK(store->Verify("b", *budget_, {}));
  }
  // Of the version mark, directories, a segment, the manifest and CURRENT.
  EXPECT_GE(failed_syncs, 12);
}

// A write that failed for want of room leaves nothing, and works once there is
// room again.
TEST_F(StoredModelCrashTest, AFullDiskLeavesNothingAndIsNotForEver) {
  bool reached = true;
  for (int64_t n = 0; reached && !HasFailure(); ++n) {
    MemoryFileSystem memory;
    FaultFileSystem faults(memory);
    Ledger ledger;
    Prepare(memory, ledger);
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelStore> store, Open(faults));
    faults.FailAfter(n, Fault::kFull);
    const absl::Status first = store->Save(Model("a", 3), {}, {}).status();
    reached = faults.failed();
    if (!reached || absl::StartsWith(faults.failed_operation(), "rename")) continue;
    SCOPED_TRACE(faults.failed_operation());
    EXPECT_THAT(first, HasReason(Reason::kStorageFull, testing::HasSubstr("model \"a\"")));
    CheckNothingLeft(memory, *store);
    EXPECT_EQ(Load(*store), ContentOfVersion(1));
    PW_ASSERT_OK(store->Save(Model("a", 3), {}, {}));
    EXPECT_EQ(Load(*store), ContentOfVersion(3));
  }
}

// Reads that fail end a load or a verification with the disk's failure; they do
// not make the model a damaged one.
TEST_F(StoredModelCrashTest, AFailedReadIsNoDamage) {
  bool reached = true;
  for (int64_t n = 0; reached && !HasFailure(); ++n) {
    MemoryFileSystem memory;
    FaultFileSystem faults(memory);
    Ledger ledger;
    Prepare(memory, ledger);
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelStore> store, Open(faults));
    const int64_t used_before = budget_->used_bytes();
    faults.FailAfter(n, Fault::kError);
    const absl::Status load = store->Load("a", *budget_, {}).status();
    reached = faults.failed();
    if (reached) {
      EXPECT_THAT(load, HasReason(Reason::kUnavailable));
    }
    faults.FailAfter(n, Fault::kError);
    const absl::Status verify = store->Verify("a", *budget_, {}).status();
    if (faults.failed()) {
      EXPECT_THAT(verify, HasReason(Reason::kUnavailable));
    }
    faults.Heal();
    EXPECT_EQ(budget_->used_bytes(), used_before);
    PW_EXPECT_OK(store->List()[0].damage);
    EXPECT_EQ(Load(*store), ContentOfVersion(1));
  }
}

}  // namespace
}  // namespace planewise
