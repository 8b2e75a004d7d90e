#include "core/checkpoint/model_store.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/base/posix_file_system.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/live_checksums.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/checkpoint/store_test_model.h"
#include "gmock/gmock.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRoot[] = "/s";
constexpr char kSegment[] = "/s/models/a/segments/00000000000000000001-0000.safetensors";
constexpr char kManifest[] = "/s/models/a/manifests/00000000000000000001.manifest";
constexpr char kCurrent[] = "/s/models/a/CURRENT";

class ModelStoreTest : public testing::Test {
 protected:
  ModelVersion Model(const std::string& name, uint64_t version, uint64_t seed = 1) {
    return MakeTestModel(name, WeightVersion(version), seed, *budget_);
  }
  std::unique_ptr<ModelStore> Open(StoreAccess access = StoreAccess::kReadWrite) {
    absl::StatusOr<std::unique_ptr<ModelStore>> store = ModelStore::Open(fs_, kRoot, access);
    PW_EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  // All files below `path`, sorted.
  std::vector<std::string> Tree(const std::string& path) {
    std::vector<std::string> files;
    const std::vector<std::string> names = fs_.List(path).value();
    for (const std::string& name : names) {
      const std::string child = path + "/" + name;
      if (fs_.Stat(child)->is_directory) {
        for (std::string& file : Tree(child)) files.push_back(std::move(file));
      } else {
        files.push_back(child);
      }
    }
    return files;
  }

  MemoryFileSystem fs_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
};

TEST_F(ModelStoreTest, WhatIsSavedLoadsAfterAReopen) {
  const ModelVersion model = Model("a", 1);
  {
    const std::unique_ptr<ModelStore> store = Open();
    PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome saved, store->Save(model, {"request-1"}, {}));
    EXPECT_EQ(saved.version, WeightVersion(1));
    EXPECT_TRUE(saved.written);
    EXPECT_EQ(saved.path, "/s/models/a");
  }
  const std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(store->open_report(), IsEmpty());
  const std::vector<StoredModel> models = store->List();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "a");
  PW_EXPECT_OK(models[0].damage);
  EXPECT_EQ(models[0].version, WeightVersion(1));
  EXPECT_EQ(models[0].stored_bytes, model.stored_bytes());
  EXPECT_EQ(models[0].recipe, model.recipe);
  PW_ASSERT_OK_AND_ASSIGN(const Manifest manifest, store->ManifestOf("a"));
  EXPECT_THAT(manifest.request_ids, ElementsAre("request-1"));
  PW_ASSERT_OK_AND_ASSIGN(const ModelVersion loaded, store->Load("a", *budget_, {}));
  EXPECT_EQ(ContentOf(loaded), ContentOf(model));
}

TEST(ModelStoreDiskTest, TheRealDiskKeepsAModel) {
  const ScratchDirectory scratch;
  const std::string root = scratch.path() + "/store/";
  const std::shared_ptr<MemoryBudget> budget = MemoryBudget::Create(int64_t{1} << 30);
  const ModelVersion model = MakeTestModel("a", WeightVersion(1), 7, *budget);
  for (const bool first : {true, false}) {
    PW_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ModelStore> store,
        ModelStore::Open(PosixFileSystem(), root, StoreAccess::kReadWrite));
    PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome saved, store->Save(model, {}, {}));
    EXPECT_EQ(saved.written, first);
    PW_ASSERT_OK_AND_ASSIGN(const ModelVersion loaded, store->Load("a", *budget, {}));
    EXPECT_EQ(ContentOf(loaded), ContentOf(model));
    PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, store->Verify("a", *budget, {}));
    EXPECT_THAT(report.findings, IsEmpty());
  }
}

// A metadata-only file once had a header that nobody could read.
TEST_F(ModelStoreTest, AModelWithoutTensorsIsReadable) {
  ModelVersion model = Model("a", 1);
  model.layers.clear();
  PW_ASSERT_OK(Open()->Save(model, {}, {}));
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK_AND_ASSIGN(const ModelVersion loaded, store->Load("a", *budget_, {}));
  EXPECT_EQ(ContentOf(loaded), ContentOf(model));
  PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, store->Verify("a", *budget_, {}));
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST_F(ModelStoreTest, BytesOnDiskAreThePlannedBytes) {
  const ModelVersion model = Model("a", 1);
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome saved, store->Save(model, {}, {}));
  PW_ASSERT_OK_AND_ASSIGN(const Manifest manifest, store->ManifestOf("a"));
  int64_t planned = 0;
  for (const StoredLayer& layer : manifest.layers) {
    for (const StoredPlane& plane : layer.weight.planes) {
      const PlaneLayout layout =
          PlaneLayoutFor(layer.weight.format, layer.weight.geometry, plane.kind,
                         layer.weight.shape, layer.weight.nominal)
              .value();
      EXPECT_EQ(plane.payload ? plane.payload->length : 0, layout.payload_bytes);
      EXPECT_EQ(plane.scales ? plane.scales->length : 0, layout.scale_bytes);
      planned += layout.total_bytes();
    }
    if (layer.bias) planned += layer.bias->planes[0].payload->length;
  }
  EXPECT_EQ(manifest.stored_bytes(), planned);
  EXPECT_EQ(model.stored_bytes(), planned);
  ASSERT_EQ(manifest.segments.size(), 1u);
  EXPECT_EQ(fs_.Stat(kSegment)->size_bytes, manifest.segments[0].header_bytes + planned);
  EXPECT_EQ(saved.written_bytes, fs_.Stat(kSegment)->size_bytes + fs_.Stat(kManifest)->size_bytes +
                                     fs_.Stat(kCurrent)->size_bytes);
}

TEST_F(ModelStoreTest, SegmentsAreSafetensorsFilesOfPayloadsAndU8Scales) {
  PW_ASSERT_OK(Open()->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs_, kSegment));
  const SafetensorsEntry* payload = reader.Find("layers.0.q.weight#column.payload");
  const SafetensorsEntry* scales = reader.Find("layers.0.q.weight#column.scales");
  const SafetensorsEntry* bias = reader.Find("layers.0.q.bias#high_precision.payload");
  ASSERT_TRUE(payload != nullptr && scales != nullptr && bias != nullptr);
  EXPECT_EQ(payload->dtype, DType::kF8E4M3);
  EXPECT_THAT(payload->shape, ElementsAre(96, 64));
  EXPECT_EQ(scales->dtype, DType::kU8);
  EXPECT_THAT(scales->shape, ElementsAre(4, 128));
  EXPECT_EQ(bias->dtype, DType::kBF16);
  EXPECT_EQ(reader.Find("layers.0.up.weight#column.payload"), nullptr);
}

TEST_F(ModelStoreTest, SavingADurableVersionAgainWritesNothing) {
  const ModelVersion model = Model("a", 1);
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(model, {}, {}));
  const std::string before = absl::StrJoin(Tree(kRoot), "\n");
  PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome again, store->Save(model, {}, {}));
  EXPECT_FALSE(again.written);
  EXPECT_EQ(again.written_bytes, 0);
  EXPECT_EQ(again.version, WeightVersion(1));
  EXPECT_EQ(absl::StrJoin(Tree(kRoot), "\n"), before);
}

TEST_F(ModelStoreTest, ANewerVersionReplacesAndAnOlderOneIsRefused) {
  const std::unique_ptr<ModelStore> store = Open();
  const ModelVersion newer = Model("a", 5, 2);
  PW_ASSERT_OK(store->Save(Model("a", 4), {}, {}));
  PW_ASSERT_OK(store->Save(newer, {}, {}));
  const absl::Status refused = store->Save(Model("a", 4), {}, {}).status();
  EXPECT_THAT(refused, HasReason(Reason::kVersionConflict, HasSubstr("durable version 5")));
  EXPECT_EQ(*DetailsOf(refused)->Find("currentVersion"), "5");
  PW_ASSERT_OK_AND_ASSIGN(const ModelVersion loaded, store->Load("a", *budget_, {}));
  EXPECT_EQ(ContentOf(loaded), ContentOf(newer));
}

TEST_F(ModelStoreTest, IllegalNamesAreRefusedBeforeAnythingIsMade) {
  const std::unique_ptr<ModelStore> store = Open();
  for (const std::string& name : std::vector<std::string>{
           "", ".", "..", "a/b", "a b", "\xc3\xa4", std::string(129, 'x')}) {
    ModelVersion model = Model("a", 1);
    model.model = name;
    EXPECT_THAT(store->Save(model, {}, {}),
                HasReason(Reason::kInvalidRequest, HasSubstr("A-Z a-z 0-9 . _ -")));
  }
  EXPECT_THAT(fs_.List("/s/models"), IsOkAndHolds(IsEmpty()));
  PW_EXPECT_OK(store->Save(Model(std::string(128, 'x'), 1), {}, {}));
  PW_EXPECT_OK(store->Save(Model("...-_", 1), {}, {}));
}

TEST_F(ModelStoreTest, WhatTheFormatCannotHoldIsNotMadeDurable) {
  const std::unique_ptr<ModelStore> store = Open();
  ModelVersion model = Model("a", 1);
  model.layers[1].name = model.layers[0].name;
  EXPECT_THAT(store->Save(model, {}, {}),
              HasReason(Reason::kInternal, HasSubstr("\"layers.0.q\" occurs twice")));
  EXPECT_THAT(store->List(), IsEmpty());
  EXPECT_THAT(fs_.List("/s/models"), IsOkAndHolds(IsEmpty()));
}

TEST_F(ModelStoreTest, DeleteRemovesEverythingOfOneModel) {
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK(store->Save(Model("b", 2), {}, {}));
  PW_ASSERT_OK(store->Delete("a"));
  EXPECT_THAT(fs_.List("/s/models"), IsOkAndHolds(ElementsAre("b")));
  EXPECT_THAT(store->Load("a", *budget_, {}), HasReason(Reason::kNotFound, HasSubstr("\"a\"")));
  EXPECT_THAT(store->ManifestOf("a"), HasReason(Reason::kNotFound));
  EXPECT_THAT(store->Verify("a", *budget_, {}), HasReason(Reason::kNotFound));
  EXPECT_THAT(store->Delete("a"), HasReason(Reason::kNotFound));
  PW_EXPECT_OK(store->Load("b", *budget_, {}));
  PW_EXPECT_OK(store->Save(Model("a", 3), {}, {}));
}

TEST_F(ModelStoreTest, FilesOfOthersAreNotRemoved) {
  std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK(fs_.Create("/s/models/a/segments/notes.txt"));
  PW_ASSERT_OK(store->Delete("a"));
  EXPECT_THAT(Tree("/s/models"), ElementsAre(kCurrent, "/s/models/a/segments/notes.txt"));
  store.reset();
  store = Open();
  EXPECT_THAT(store->List(), IsEmpty());
  PW_EXPECT_OK(store->Save(Model("a", 2), {}, {}));
}

TEST_F(ModelStoreTest, OneDaemonAtATime) {
  std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(ModelStore::Open(fs_, kRoot, StoreAccess::kReadWrite),
              HasReason(Reason::kStoreLocked, HasSubstr("\"/s\" is in use")));
  EXPECT_THAT(ModelStore::Open(fs_, kRoot, StoreAccess::kReadOnly),
              HasReason(Reason::kStoreLocked));
  store.reset();
  PW_EXPECT_OK(ModelStore::Open(fs_, kRoot, StoreAccess::kReadWrite));
}

TEST_F(ModelStoreTest, ReadersShareAndWriteNothing) {
  EXPECT_THAT(ModelStore::Open(fs_, kRoot, StoreAccess::kReadOnly),
              HasReason(Reason::kNotFound, HasSubstr("no store at \"/s\"")));
  PW_ASSERT_OK(Open()->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK(fs_.Create("/s/models/a/segments/x.tmp"));
  const std::vector<std::string> before = Tree(kRoot);
  const std::unique_ptr<ModelStore> one = Open(StoreAccess::kReadOnly);
  const std::unique_ptr<ModelStore> two = Open(StoreAccess::kReadOnly);
  PW_EXPECT_OK(one->Load("a", *budget_, {}));
  PW_EXPECT_OK(two->Verify("a", *budget_, {}));
  EXPECT_THAT(one->Save(Model("a", 2), {}, {}), HasReason(Reason::kStoreReadOnly));
  EXPECT_THAT(one->Delete("a"), HasReason(Reason::kStoreReadOnly));
  EXPECT_THAT(one->ReserveVersions(1), HasReason(Reason::kStoreReadOnly));
  EXPECT_EQ(Tree(kRoot), before);
}

TEST_F(ModelStoreTest, AModelInUseIsBusyAndOthersAreNot) {
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK(store->Save(Model("b", 2), {}, {}));
  const ModelVersion newer = Model("a", 3);
  int calls = 0;
  TransferControl while_saving;
  while_saving.on_progress = [&](const TransferProgress&) {
    if (calls++ > 0) return;
    EXPECT_THAT(store->Load("a", *budget_, {}), HasReason(Reason::kModelBusy, HasSubstr("\"a\"")));
    EXPECT_THAT(store->Delete("a"), HasReason(Reason::kModelBusy));
    EXPECT_THAT(store->Save(newer, {}, {}), HasReason(Reason::kModelBusy));
    PW_EXPECT_OK(store->Load("b", *budget_, {}));
  };
  PW_ASSERT_OK(store->Save(newer, {}, while_saving));
  EXPECT_GT(calls, 0);
  calls = 0;
  TransferControl while_loading;
  while_loading.on_progress = [&](const TransferProgress&) {
    if (calls++ > 0) return;
    PW_EXPECT_OK(store->Load("a", *budget_, {}));
    EXPECT_THAT(store->Save(Model("a", 4), {}, {}), HasReason(Reason::kModelBusy));
    EXPECT_THAT(store->Delete("a"), HasReason(Reason::kModelBusy));
  };
  PW_ASSERT_OK(store->Load("a", *budget_, while_loading));
  EXPECT_GT(calls, 0);
  PW_EXPECT_OK(store->Delete("a"));
}

TEST_F(ModelStoreTest, ProgressRisesToTheTotal) {
  const std::unique_ptr<ModelStore> store = Open();
  const ModelVersion model = Model("a", 1);
  std::vector<int64_t> done;
  TransferControl control;
  control.on_progress = [&](const TransferProgress& progress) {
    EXPECT_EQ(progress.total_bytes, model.stored_bytes());
    EXPECT_GE(progress.done_bytes, done.empty() ? 0 : done.back());
    EXPECT_TRUE(absl::StrContains(progress.object, "#")) << progress.object;
    done.push_back(progress.done_bytes);
  };
  const auto expect_whole = [&] {
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(done.back(), model.stored_bytes());
    done.clear();
  };
  PW_ASSERT_OK(store->Save(model, {}, control));
  expect_whole();
  PW_ASSERT_OK(store->Load("a", *budget_, control));
  expect_whole();
  PW_ASSERT_OK(store->Verify("a", *budget_, control));
  expect_whole();
  PW_ASSERT_OK(LiveChecksums(model, control));
  expect_whole();
}

TEST_F(ModelStoreTest, ACancelledTransferLeavesNothing) {
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 1), {}, {}));
  const std::vector<std::string> before = Tree(kRoot);
  const ModelVersion newer = Model("a", 2);
  const ModelVersion other = Model("b", 3);
  const int64_t used_before = budget_->used_bytes();
  int stop_at = 0;
  for (bool reached = true; reached; ++stop_at) {
    reached = false;
    std::atomic<bool> cancel = false;
    int calls = 0;
    TransferControl control;
    control.cancel = &cancel;
    control.on_progress = [&](const TransferProgress&) {
      if (calls++ == stop_at) reached = cancel = true;
    };
    const auto expect_cancelled = [&](const absl::Status& status) {
      if (reached) {
        EXPECT_THAT(status, HasReason(Reason::kCancelled, HasSubstr("given up")));
      }
      cancel = false;
      calls = 0;
    };
    if (stop_at < 8) {  // Fewer parts than either model has.
      expect_cancelled(store->Save(newer, {}, control).status());
      EXPECT_EQ(Tree(kRoot), before);
      expect_cancelled(store->Save(other, {}, control).status());
      EXPECT_EQ(Tree(kRoot), before);
    }
    expect_cancelled(store->Verify("a", *budget_, control).status());
    expect_cancelled(store->Load("a", *budget_, control).status());
    EXPECT_EQ(budget_->used_bytes(), used_before);
  }
  EXPECT_GT(stop_at, 8);
  PW_EXPECT_OK(store->Load("a", *budget_, {}));
}

TEST_F(ModelStoreTest, TooLittleMemoryIsRefusedBeforeReading) {
  const std::unique_ptr<ModelStore> store = Open();
  const ModelVersion model = Model("a", 1);
  PW_ASSERT_OK(store->Save(model, {}, {}));
  const std::shared_ptr<MemoryBudget> small = MemoryBudget::Create(model.stored_bytes() - 1);
  EXPECT_THAT(store->Load("a", *small, {}),
              HasReason(Reason::kMemoryShortfall, HasSubstr("model \"a\"")));
  EXPECT_EQ(small->used_bytes(), 0);
  const std::shared_ptr<MemoryBudget> tiny = MemoryBudget::Create(100);
  EXPECT_THAT(store->Verify("a", *tiny, {}), HasReason(Reason::kMemoryShortfall));
  PW_EXPECT_OK(store->List()[0].damage);
}

TEST_F(ModelStoreTest, LoadedBytesEqualTheManifest) {
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 1), {}, {}));
  PW_ASSERT_OK_AND_ASSIGN(const ModelVersion loaded, store->Load("a", *budget_, {}));
  PW_ASSERT_OK_AND_ASSIGN(const Manifest manifest, store->ManifestOf("a"));
  PW_ASSERT_OK_AND_ASSIGN(std::vector<LiveChecksum> live, LiveChecksums(loaded, {}));
  EXPECT_THAT(CompareWithManifest(live, manifest), IsEmpty());
  live[0].checksum ^= 1;
  live[1].length += 1;
  live[2].part = "other";
  EXPECT_THAT(CompareWithManifest(live, manifest),
              ElementsAre(HasSubstr("#column.payload: not in memory"),
                          HasSubstr("#row.payload: checksum"), HasSubstr("#row.scales: 513 bytes"),
                          "other: not in the manifest"));
}

// --- Version numbers.

TEST_F(ModelStoreTest, NumbersAreNeverGivenOutTwice) {
  std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(store->ReserveVersions(10), IsOkAndHolds(WeightVersion(1)));
  EXPECT_THAT(store->ReserveVersions(1), IsOkAndHolds(WeightVersion(11)));
  store.reset();
  fs_.Crash(Unsynced::kLost, 0);
  store = Open();
  EXPECT_THAT(store->ReserveVersions(1), IsOkAndHolds(WeightVersion(12)));
  // A save with a number that was not reserved raises the mark.
  PW_ASSERT_OK(store->Save(Model("a", 40), {}, {}));
  PW_ASSERT_OK(store->Delete("a"));
  EXPECT_THAT(store->ReserveVersions(1), IsOkAndHolds(WeightVersion(41)));
  store.reset();
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_THAT(Open()->ReserveVersions(1), IsOkAndHolds(WeightVersion(42)));
}

TEST_F(ModelStoreTest, ReservationsAreBounded) {
  const std::unique_ptr<ModelStore> store = Open();
  for (const int64_t count : {int64_t{0}, int64_t{-1}, kReservedVersionsMax + 1, INT64_MAX}) {
    EXPECT_THAT(store->ReserveVersions(count), HasReason(Reason::kInvalidRequest));
  }
  PW_EXPECT_OK(store->ReserveVersions(kReservedVersionsMax));
}

TEST_F(ModelStoreTest, ALostRecordOfNumbersSkipsAllThatCanHaveBeenGivenOut) {
  std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK(store->Save(Model("a", 7), {}, {}));
  store.reset();
  fs_.SetContents("/s/VERSIONS", "damaged");
  store = Open();
  EXPECT_THAT(store->open_report(), ElementsAre(AllOf(HasSubstr("go on at 8589934592"),
                                                      HasSubstr("/s/VERSIONS"))));
  EXPECT_THAT(store->ReserveVersions(1), IsOkAndHolds(WeightVersion(uint64_t{1} << 33)));
  store.reset();
  PW_ASSERT_OK(fs_.Remove("/s/VERSIONS"));
  store = Open();
  EXPECT_THAT(store->open_report(), ElementsAre(HasSubstr("go on at")));
}

}  // namespace
}  // namespace planewise
