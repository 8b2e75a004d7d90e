#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/weights/catalog_fixture.h"
#include "service/weights/model_catalog.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class StoredModelsTest : public CatalogFixture {
 protected:
  StoredModelsTest() { OpenStore(); }

  std::vector<std::string> LoadStored() {
    auto report = Wait<std::vector<std::string>>([&](DoneCallback<std::vector<std::string>> done) {
      catalog().LoadStored(std::move(done));
    });
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  // The only file of that kind below /store.
  std::string FindFile(const std::string& directory, absl::string_view suffix) {
    const std::vector<std::string> names = *files_.List(directory);
    for (const std::string& name : names) {
      if (absl::string_view(name).find(suffix) != absl::string_view::npos) {
        return JoinPath(directory, name);
      }
    }
    return "";
  }

  void FlipByteOfSegment() {
    const std::string path = FindFile("/store/models/m/segments", ".safetensors");
    std::string bytes = files_.Contents(path);
    bytes.back() ^= 1;
    files_.SetContents(path, bytes);
  }
};

TEST_F(StoredModelsTest, ASavedModelComesBackToTheByte) {
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription before,
                          Create(Spec("m", BackwardOverride::kNone)));
  EXPECT_EQ(before.durable_version, WeightVersion());
  PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome saved, Save("m"));
  EXPECT_TRUE(saved.written);
  EXPECT_GE(saved.written_bytes, before.actual_bytes);
  EXPECT_EQ(catalog().Describe("m")->durable_version, before.version->version);
  PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome again, Save("m"));
  EXPECT_FALSE(again.written);

  Restart();
  EXPECT_THAT(LoadStored(), ElementsAre(HasSubstr("model \"m\": version ")));
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription after, catalog().Describe("m"));
  EXPECT_EQ(after.state, ModelState::kServing);
  EXPECT_EQ(after.version->version, before.version->version);
  EXPECT_EQ(after.durable_version, before.version->version);
  EXPECT_EQ(after.planned_bytes, after.actual_bytes);
  EXPECT_EQ(after.actual_bytes, before.actual_bytes);
  const auto bytes = [](const HostBuffer& buffer) {
    return std::vector<std::byte>(buffer.bytes().begin(), buffer.bytes().end());
  };
  for (size_t i = 0; i < before.version->layers.size(); ++i) {
    const HostedLayer& a = before.version->layers[i];
    const HostedLayer& b = after.version->layers[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.decision, b.decision);
    EXPECT_EQ(a.provenance, b.provenance);
    EXPECT_EQ(bytes(a.weight->row->payload), bytes(b.weight->row->payload));
    EXPECT_EQ(bytes(a.weight->column->scales), bytes(b.weight->column->scales));
    EXPECT_EQ(bytes(a.bias->high_precision->payload), bytes(b.bias->high_precision->payload));
  }
}

// Invariant 3.
TEST_F(StoredModelsTest, NumbersAreNeverUsedTwice) {
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription first, Create(Spec("m")));
  const WeightVersion lost = first.version->version;
  Restart();
  EXPECT_THAT(LoadStored(), IsEmpty()) << "it was never saved";
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription second, Create(Spec("m")));
  EXPECT_GT(second.version->version, lost);
}

TEST_F(StoredModelsTest, VerifyReadsMemoryAndDisk) {
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription model, Create(Spec("m")));
  PW_ASSERT_OK_AND_ASSIGN(const VerifyOutcome in_memory, Verify("m"));
  EXPECT_TRUE(in_memory.ok);
  EXPECT_EQ(in_memory.checked_bytes, model.actual_bytes);
  PW_ASSERT_OK(Save("m"));
  PW_ASSERT_OK_AND_ASSIGN(const VerifyOutcome both, Verify("m"));
  EXPECT_TRUE(both.ok);
  EXPECT_GE(both.checked_bytes, 2 * model.actual_bytes);

  // A bit flips in memory, behind everybody's back.
  auto* payload = const_cast<std::byte*>(model.version->layers[1].weight->row->payload.data());
  payload[5] ^= std::byte{4};
  PW_ASSERT_OK_AND_ASSIGN(const VerifyOutcome flipped, Verify("m"));
  EXPECT_FALSE(flipped.ok);
  EXPECT_THAT(flipped.findings,
              ElementsAre(HasSubstr(model.version->layers[1].weight->name + "#row.payload"),
                          HasSubstr("memory and disk")));
  payload[5] ^= std::byte{4};

  FlipByteOfSegment();
  PW_ASSERT_OK_AND_ASSIGN(const VerifyOutcome on_disk, Verify("m"));
  EXPECT_FALSE(on_disk.ok);
  EXPECT_THAT(on_disk.findings, ElementsAre(HasSubstr("on disk: ")));
}

TEST_F(StoredModelsTest, ADamagedModelIsListedNotServedAndMayBeDeleted) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  PW_ASSERT_OK(Save("m"));
  PW_ASSERT_OK(Create(Spec("whole")));
  PW_ASSERT_OK(Save("whole"));
  Restart();
  FlipByteOfSegment();
  EXPECT_THAT(LoadStored(), ElementsAre(HasSubstr("model \"m\": not served"),
                                        HasSubstr("model \"whole\": version")));
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription model, catalog().Describe("m"));
  EXPECT_EQ(model.state, ModelState::kDamaged);
  EXPECT_EQ(model.damage.code(), absl::StatusCode::kDataLoss);
  LeaseRequest request;
  request.model = "m";
  EXPECT_EQ(catalog().Lease(std::move(request)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Save("m").status().code(), absl::StatusCode::kDataLoss);
  PW_ASSERT_OK_AND_ASSIGN(const VerifyOutcome verified, Verify("m"));
  EXPECT_FALSE(verified.ok);

  DeleteModelSpec spec = Deletion("m");
  spec.delete_stored = true;
  PW_ASSERT_OK(Delete(spec));
  Restart();
  EXPECT_THAT(LoadStored(), ElementsAre(HasSubstr("\"whole\"")));
}

TEST_F(StoredModelsTest, ModelsThatDoNotFitAreListedWithTheReason) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  PW_ASSERT_OK(Save("m"));
  Restart();
  const Reservation others =
      *budget_->Reserve(MemoryUse::kTransport, budget_->limit_bytes() - 100, "others");
  EXPECT_THAT(LoadStored(), ElementsAre(HasSubstr("not served")));
  EXPECT_THAT(catalog().Describe("m")->damage, HasReason(Reason::kMemoryShortfall));
}

TEST_F(StoredModelsTest, DeletingFromMemoryLeavesTheStore) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  PW_ASSERT_OK(Save("m"));
  PW_ASSERT_OK(Delete(Deletion("m")));
  Restart();
  EXPECT_THAT(LoadStored(), SizeIs(1));
  DeleteModelSpec spec = Deletion("m");
  spec.delete_stored = true;
  PW_ASSERT_OK(Delete(spec));
  Restart();
  EXPECT_THAT(LoadStored(), IsEmpty());
  EXPECT_THAT(*files_.List("/store/models"), IsEmpty());
}

TEST_F(StoredModelsTest, AModelThatWasNeverSavedIsDeletedAllTheSame) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  DeleteModelSpec spec = Deletion("m");
  spec.delete_stored = true;
  PW_ASSERT_OK_AND_ASSIGN(const DeleteOutcome outcome, Delete(spec));
  EXPECT_GT(outcome.freed_bytes, 0);
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(StoredModelsTest, RepeatedSavesOfOneRequestAreOne) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  int answers = 0;
  for (int i = 0; i < 2; ++i) {
    catalog().Save(principal_, "m", "s1", nullptr, [&](absl::StatusOr<SaveOutcome> outcome) {
      PW_EXPECT_OK(outcome);
      EXPECT_TRUE(outcome->written);
      ++answers;
    });
  }
  EXPECT_THAT(Save("m"), HasReason(Reason::kModelBusy, HasSubstr("being saved")));
  EXPECT_EQ(answers, 2);
  PW_ASSERT_OK_AND_ASSIGN(const SaveOutcome again, Save("m", "s1"));
  EXPECT_TRUE(again.written) << "the first answer";
}

TEST_F(StoredModelsTest, WithoutAStoreNothingIsSaved) {
  store_ = nullptr;
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  EXPECT_THAT(Save("m"), HasReason(Reason::kNoStore, HasSubstr("save model \"m\"")));
  DeleteModelSpec spec = Deletion("m");
  spec.delete_stored = true;
  EXPECT_THAT(Delete(spec), HasReason(Reason::kNoStore));
  EXPECT_THAT(LoadStored(), IsEmpty());
  EXPECT_THAT(catalog().List("", 10), Not(IsEmpty()));
}

}  // namespace
}  // namespace planewise
