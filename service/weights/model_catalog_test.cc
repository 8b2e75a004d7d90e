#include "service/weights/model_catalog.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/weights/catalog_fixture.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr absl::string_view kQuery = "encoder.layer.0.attention.self.query";

class ModelCatalogTest : public CatalogFixture {};

struct BytesCase {
  std::string name;
  Recipe recipe;
  PlanePolicy policy;
  bool backward_enabled;
  // Of one 64 x 64 weight.
  int64_t row_bytes;
  int64_t column_bytes;
  int64_t high_precision_bytes;
};

// Invariant 4: what was planned is what the allocator counts, to the byte.
TEST_F(ModelCatalogTest, PlannedBytesAreActualBytes) {
  WriteSource();
  const Recipe mxfp8 = DefaultRecipe(Format::kMxfp8);
  Recipe dequantized = mxfp8;
  dequantized.backward_override = BackwardOverride::kDequantized;
  // 64 x 64 codes; scales [64, 2] padded to [128, 4] and [2, 64] to [4, 128].
  constexpr int64_t kPlane = 64 * 64 + 128 * 4;
  const BytesCase kCases[] = {
      {"default keeps both", mxfp8, PlanePolicy::kAuto, true, kPlane, kPlane, 0},
      {"an override keeps rows", dequantized, PlanePolicy::kAuto, true, kPlane, 0, 0},
      {"inference keeps rows", mxfp8, PlanePolicy::kAuto, false, kPlane, 0, 0},
      {"policy both", dequantized, PlanePolicy::kBoth, true, kPlane, kPlane, 0},
      {"policy row only", dequantized, PlanePolicy::kRowOnly, true, kPlane, 0, 0},
      {"no recipe", DefaultRecipe(Format::kNone), PlanePolicy::kAuto, true, 0, 0, 64 * 64 * 2},
  };
  for (const BytesCase& c : kCases) {
    SCOPED_TRACE(c.name);
    CreateModelSpec spec = Spec("m");
    spec.recipe = c.recipe;
    spec.policy = c.policy;
    spec.backward_enabled = c.backward_enabled;
    PW_ASSERT_OK_AND_ASSIGN(ModelDescription model, Create(spec));
    EXPECT_EQ(model.planned_bytes, model.actual_bytes);
    EXPECT_EQ(model.planned_bytes, model.plan->totals.persistent_bytes);
    EXPECT_EQ(model.actual_bytes, budget_->used_bytes(MemoryUse::kWeights));
    EXPECT_EQ(model.planned_load_peak_bytes, model.actual_load_peak_bytes);
    EXPECT_EQ(budget_->used_bytes(), model.actual_bytes) << "nothing else is left of the load";
    const HostedLayer& layer = *model.version->FindLayer(kQuery);
    const auto bytes = [](const std::shared_ptr<const Plane>& plane) {
      return plane == nullptr ? 0 : plane->payload.size_bytes() + plane->scales.size_bytes();
    };
    EXPECT_EQ(bytes(layer.weight->row), c.row_bytes);
    EXPECT_EQ(bytes(layer.weight->column), c.column_bytes);
    EXPECT_EQ(bytes(layer.weight->high_precision), c.high_precision_bytes);
    ASSERT_THAT(model.planned_weight_bytes, SizeIs(model.version->layers.size()));
    for (size_t i = 0; i < model.version->layers.size(); ++i) {
      EXPECT_EQ(model.planned_weight_bytes[i], model.version->layers[i].weight->stored_bytes());
    }
    model.version = nullptr;
    PW_ASSERT_OK(Delete(Deletion("m")));
    EXPECT_EQ(budget_->used_bytes(), 0);
  }
}

TEST_F(ModelCatalogTest, SourcesInBf16ReadAsIs) {
  WriteSource(RandomTensors(kTinyBert, DType::kBF16, 1));
  CreateModelSpec spec = Spec("m");
  spec.recipe = DefaultRecipe(Format::kNone);
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription model, Create(spec));
  std::vector<ModelTensor> source = RandomTensors(kTinyBert, DType::kBF16, 1);
  const HostedLayer& layer = *model.version->FindLayer(kQuery);
  const auto bytes = layer.weight->high_precision->payload.bytes();
  EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()),
            FindTensor(source, layer.weight->name).bytes);
  EXPECT_EQ(layer.provenance, "kept from BF16");
  EXPECT_EQ(model.planned_load_peak_bytes, model.actual_load_peak_bytes);
}

// Field report 56: what has no weights yet is refused, not read as zeros.
TEST_F(ModelCatalogTest, StateIsAnnouncedAndTheNameIsTakenAtOnce) {
  WriteSource();
  bool created = false;
  catalog().Create(principal_, Spec("m"), nullptr,
                   [&](absl::StatusOr<ModelDescription> model) { created = model.ok(); });
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription loading, catalog().Describe("m"));
  EXPECT_EQ(loading.state, ModelState::kLoading);
  EXPECT_EQ(loading.version, nullptr) << "invariant 1: no part of it is to be seen";
  LeaseRequest request;
  request.model = "m";
  EXPECT_THAT(catalog().Lease(std::move(request)), HasReason(Reason::kModelBusy));
  ReadWeightsSpec read;
  read.name = "m";
  read.plane = PlaneKind::kRow;
  EXPECT_THAT(catalog().ReadWeights(principal_, read).status(), HasReason(Reason::kModelBusy));
  std::optional<absl::Status> verified;
  catalog().Verify(principal_, "m", nullptr, [&](absl::StatusOr<VerifyOutcome> outcome) {
    verified = outcome.status();
  });
  EXPECT_THAT(Delete(Deletion("m")), HasReason(Reason::kModelBusy)) << "it was still loading";
  ASSERT_TRUE(verified.has_value());
  EXPECT_THAT(*verified, HasReason(Reason::kModelBusy)) << "nothing was there to be verified";
  EXPECT_TRUE(created);
  EXPECT_THAT(Create(Spec("m")), HasReason(Reason::kAlreadyExists, HasSubstr("\"m\"")));
  PW_ASSERT_OK(Delete(Deletion("m")));
  EXPECT_THAT(states_, ElementsAre(Pair("m", ModelState::kLoading), Pair("m", ModelState::kServing),
                                   Pair("m", std::nullopt)));
}

TEST_F(ModelCatalogTest, ListsByName) {
  WriteSource();
  for (const char* name : {"b", "a", "c"}) PW_ASSERT_OK(Create(Spec(name)));
  const auto names = [&](absl::string_view after, int limit) {
    std::vector<std::string> names;
    for (const ModelDescription& model : catalog().List(after, limit)) names.push_back(model.name);
    return names;
  };
  EXPECT_THAT(names("", 10), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names("", 2), ElementsAre("a", "b"));
  EXPECT_THAT(names("b", 2), ElementsAre("c"));
  EXPECT_THAT(names("z", 2), IsEmpty());
}

struct RefusalCase {
  std::string name;
  CreateModelSpec spec;
  Reason reason;
  std::string message;
};

// Invariant 2: the daemon lives on and nothing is half-created.
TEST_F(ModelCatalogTest, WhatIsRefusedLeavesNothing) {
  WriteSource();
  std::vector<ModelTensor> nan = RandomTensors(kTinyBert, DType::kF32, 1);
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(FindTensor(nan, absl::StrCat(kQuery, ".weight")).bytes.data() + 4 * 77,
              &not_a_number, 4);
  WriteSource(nan, "/models/nan");
  std::vector<ModelTensor> transposed = RandomTensors(kTinyBert, DType::kF32, 1);
  std::vector<int64_t>& shape =
      FindTensor(transposed, "encoder.layer.0.intermediate.dense.weight").tensor.shape;
  std::swap(shape[0], shape[1]);
  WriteSource(transposed, "/models/transposed");
  std::vector<ModelTensor> missing = RandomTensors(kTinyBert, DType::kF32, 1);
  missing.pop_back();
  WriteSource(missing, "/models/missing");
  WriteSource(RandomTensors(kTinyBert, DType::kF32, 1), "/models/truncated");
  std::string shard = files_.Contents("/models/truncated/model.safetensors");
  shard.resize(shard.size() - 1);
  files_.SetContents("/models/truncated/model.safetensors", shard);
  WriteSource(RandomTensors(kTinyBert, DType::kF32, 1), "/elsewhere");

  const auto from = [](const std::string& path) {
    CreateModelSpec spec = Spec("m");
    spec.source_path = path;
    return spec;
  };
  CreateModelSpec no_history = Spec("m");
  no_history.recipe = DefaultRecipe(Format::kFp8Delayed);
  no_history.recipe.amax_history_length = 0;
  CreateModelSpec pointless = Spec("m");
  pointless.recipe.format = Format::kNone;
  CreateModelSpec long_id = Spec("m");
  long_id.request_id = std::string(129, 'x');
  const RefusalCase kCases[] = {
      {"a bad name", Spec("../m"), Reason::kInvalidRequest, "../m"},
      {"no such directory", from("/models/nope"), Reason::kNotFound, "/models/nope"},
      {"outside the roots", from("/elsewhere"), Reason::kPathOutsideRoots, "/elsewhere"},
      {"a NaN", from("/models/nan"), Reason::kNonFiniteInTensor,
       "create model \"m\": tensor \"encoder.layer.0.attention.self.query.weight\": NaN or "
       "infinity at index 77"},
      {"a transposed weight", from("/models/transposed"), Reason::kShapeMismatch, "transposed"},
      {"a missing tensor", from("/models/missing"), Reason::kInvalidCheckpoint, "missing"},
      {"a truncated shard", from("/models/truncated"), Reason::kInvalidCheckpoint,
       "model.safetensors"},
      {"delayed scaling without a history", no_history, Reason::kInvalidRequest,
       "amax_history_length is 0"},
      {"an override without quantization", pointless, Reason::kOverrideUnsupportedForRecipe, ""},
      {"a long request id", long_id, Reason::kLimitExceeded, "request_id_bytes_max = 128"},
  };
  for (const RefusalCase& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Create(c.spec), HasReason(c.reason, HasSubstr(c.message)));
    EXPECT_THAT(catalog().List("", 10), IsEmpty());
    EXPECT_EQ(budget_->used_bytes(), 0);
  }
  PW_EXPECT_OK(Create(Spec("m")));
}

TEST_F(ModelCatalogTest, NonFiniteValuesAreTakenWhenAskedFor) {
  std::vector<ModelTensor> tensors = RandomTensors(kTinyBert, DType::kF32, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(FindTensor(tensors, absl::StrCat(kQuery, ".weight")).bytes.data(), &infinity, 4);
  WriteSource(tensors);
  CreateModelSpec spec = Spec("m");
  spec.non_finite = NonFinitePolicy::kFormat;
  PW_EXPECT_OK(Create(spec));
}

TEST_F(ModelCatalogTest, TooLittleMemoryIsToldBeforeATensorIsRead) {
  WriteSource();
  CreateModelSpec plan_only = Spec("m");
  plan_only.validate_only = true;
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription plan, Create(plan_only));
  EXPECT_EQ(plan.version, nullptr);
  EXPECT_THAT(catalog().List("", 10), IsEmpty());
  EXPECT_EQ(budget_->used_bytes(), 0);
  const int64_t required = plan.planned_bytes + plan.planned_load_peak_bytes;

  Reservation others = *budget_->Reserve(MemoryUse::kTransport,
                                         budget_->limit_bytes() - required + 1, "others");
  const absl::StatusOr<ModelDescription> refused = Create(Spec("m"));
  EXPECT_THAT(refused, HasReason(Reason::kMemoryShortfall, HasSubstr("create model \"m\"")));
  EXPECT_THAT(Create(plan_only), HasReason(Reason::kMemoryShortfall));
  EXPECT_THAT(catalog().List("", 10), IsEmpty());
  EXPECT_EQ(budget_->peak_bytes(MemoryUse::kWeights), 0);

  others = *budget_->Reserve(MemoryUse::kTransport, 0, "nothing");
  others = *budget_->Reserve(MemoryUse::kTransport, budget_->limit_bytes() - required, "others");
  PW_EXPECT_OK(Create(Spec("m"))) << "it fits to the byte";
}

TEST_F(ModelCatalogTest, ARepeatedRequestGetsTheFirstAnswer) {
  WriteSource();
  CreateModelSpec spec = Spec("m");
  spec.request_id = "r1";
  // Twice while it runs, once when it is done.
  int answers = 0;
  for (int i = 0; i < 2; ++i) {
    catalog().Create(principal_, spec, nullptr, [&](absl::StatusOr<ModelDescription> model) {
      PW_EXPECT_OK(model);
      ++answers;
    });
  }
  runner_.RunUntilIdle();
  EXPECT_EQ(answers, 2);
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription again, Create(spec));
  EXPECT_EQ(again.version->version, WeightVersion(1));
  EXPECT_THAT(catalog().List("", 10), SizeIs(1));

  CreateModelSpec other = spec;
  other.name = "n";
  EXPECT_THAT(Create(other), HasReason(Reason::kInvalidRequest, HasSubstr("\"r1\"")));
  EXPECT_THAT(catalog().List("", 10), SizeIs(1));

  PW_ASSERT_OK(Delete(Deletion("m")));
  EXPECT_THAT(Create(spec), HasReason(Reason::kNotFound, HasSubstr("deleted since")));
}

TEST_F(ModelCatalogTest, AbandonedCreatesLeaveNothing) {
  WriteSource();
  for (int steps = 0; steps < 6; ++steps) {
    SCOPED_TRACE(steps);
    absl::Status status;
    const JobTicket ticket =
        catalog().Create(principal_, Spec("m"), nullptr,
                         [&](absl::StatusOr<ModelDescription> model) { status = model.status(); });
    for (int i = 0; i < steps; ++i) {
      if (!executor_.RunOne()) runner_.RunOne(Lane::kStorage);
    }
    catalog().Abandon(ticket);
    runner_.RunUntilIdle();
    const bool ended_before = status.ok();
    if (!ended_before) {
      EXPECT_THAT(status, HasReason(Reason::kCancelled));
      EXPECT_THAT(catalog().List("", 10), IsEmpty());
      EXPECT_EQ(budget_->used_bytes(), 0);
    } else {
      PW_ASSERT_OK(Delete(Deletion("m")));
    }
  }
}

// What the caller is told is what is so, wherever the create stands when it is
// given up.
TEST_F(ModelCatalogTest, ACreateThatIsGivenUpSaysHowItEnded) {
  WriteSource();
  CreateModelSpec spec = Spec("m");
  bool ended_before = false;
  for (int steps = 0; !ended_before; ++steps) {
    SCOPED_TRACE(steps);
    spec.request_id = absl::StrCat("r", steps);
    std::optional<absl::Status> status;
    catalog().Create(principal_, spec, nullptr,
                     [&](absl::StatusOr<ModelDescription> model) { status = model.status(); });
    for (int i = 0; i < steps; ++i) {
      if (!executor_.RunOne()) runner_.RunOne(Lane::kStorage);
    }
    ended_before = status.has_value();
    EXPECT_THAT(catalog().GiveUp(principal_, spec.request_id), IsOkAndHolds(!ended_before));
    EXPECT_THAT(catalog().GiveUp(Principal{"another"}, spec.request_id), IsOkAndHolds(false));
    runner_.RunUntilIdle();
    ASSERT_TRUE(status.has_value());
    if (ended_before) {
      PW_EXPECT_OK(*status);
      EXPECT_THAT(catalog().List("", 10), SizeIs(1));
    } else {
      EXPECT_THAT(*status, HasReason(Reason::kCancelled));
      EXPECT_THAT(catalog().List("", 10), IsEmpty());
      EXPECT_EQ(budget_->used_bytes(), 0);
    }
  }
  EXPECT_THAT(catalog().GiveUp(principal_, ""),
              HasReason(Reason::kInvalidRequest, HasSubstr("request_id")));
}

TEST_F(ModelCatalogTest, OneOfTwoCallersMayGo) {
  WriteSource();
  CreateModelSpec spec = Spec("m");
  spec.request_id = "r1";
  absl::Status first;
  bool second = false;
  const JobTicket ticket =
      catalog().Create(principal_, spec, nullptr,
                       [&](absl::StatusOr<ModelDescription> model) { first = model.status(); });
  catalog().Create(principal_, spec, nullptr,
                   [&](absl::StatusOr<ModelDescription> model) { second = model.ok(); });
  catalog().Abandon(ticket);
  runner_.RunUntilIdle();
  EXPECT_THAT(first, HasReason(Reason::kCancelled));
  EXPECT_TRUE(second);
}

TEST_F(ModelCatalogTest, ProgressGrowsToTheTotalAndStopsBeforeDone) {
  WriteSource();
  std::vector<ProgressEvent> events;
  bool done = false;
  catalog().Create(
      principal_, Spec("m"),
      [&](const ProgressEvent& event) {
        EXPECT_FALSE(done);
        events.push_back(event);
      },
      [&](absl::StatusOr<ModelDescription>) { done = true; });
  runner_.RunUntilIdle();
  ASSERT_FALSE(events.empty());
  int64_t last = 0;
  for (const ProgressEvent& event : events) {
    EXPECT_EQ(event.stage, "load");
    EXPECT_GT(event.done_bytes, last);
    last = event.done_bytes;
  }
  EXPECT_EQ(last, events.back().total_bytes);
}

TEST_F(ModelCatalogTest, JobsAreBoundedAndEndWithADrain) {
  WriteSource();
  options_.limits.jobs_max = 1;
  catalog().Create(principal_, Spec("a"), nullptr, [](absl::StatusOr<ModelDescription>) {});
  EXPECT_THAT(Create(Spec("b")), HasReason(Reason::kQuotaExceeded, HasSubstr("jobs_max = 1")));
  PW_ASSERT_OK(Create(Spec("b")));
  catalog().BeginDrain();
  EXPECT_THAT(Create(Spec("c")), HasReason(Reason::kDraining));
}

TEST_F(ModelCatalogTest, ModelsAreBounded) {
  WriteSource();
  options_.limits.models_max = 1;
  PW_ASSERT_OK(Create(Spec("a")));
  EXPECT_THAT(Create(Spec("b")), HasReason(Reason::kQuotaExceeded, HasSubstr("models_max = 1")));
}

TEST_F(ModelCatalogTest, DeletingWaitsForNobodyAndFreesWhenTheLastLeaseEnds) {
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const int64_t bytes, [&]() -> absl::StatusOr<int64_t> {
    auto model = Create(Spec("m"));
    if (!model.ok()) return model.status();
    return model->actual_bytes;
  }());
  LeaseRequest request;
  request.model = "m";
  PW_ASSERT_OK_AND_ASSIGN(WeightLease lease, catalog().Lease(std::move(request)));
  EXPECT_EQ(catalog().Describe("m")->lease_count, 1);

  DeleteModelSpec wrong = Deletion("m");
  wrong.expected_version = WeightVersion(7);
  EXPECT_THAT(Delete(wrong),
              HasReason(Reason::kVersionConflict, HasSubstr("expected version 7, current 1")));
  DeleteModelSpec spec = Deletion("m");
  spec.expected_version = WeightVersion(1);
  spec.request_id = "d1";
  PW_ASSERT_OK_AND_ASSIGN(const DeleteOutcome deleted, Delete(spec));
  EXPECT_EQ(deleted.freed_bytes, 0) << "the lease still holds them";
  EXPECT_EQ(budget_->used_bytes(), bytes);
  EXPECT_THAT(catalog().Describe("m"), HasReason(Reason::kNotFound));
  PW_EXPECT_OK(Delete(spec)) << "the same request again";
  EXPECT_THAT(Delete(Deletion("m")), HasReason(Reason::kNotFound));
  lease = WeightLease();
  EXPECT_EQ(budget_->used_bytes(), 0);
}

class ReadWeightsTest : public CatalogFixture {
 protected:
  std::vector<WeightPart> ReadAll(ReadWeightsSpec spec) {
    std::vector<WeightPart> parts;
    auto reader = catalog().ReadWeights(principal_, spec);
    EXPECT_TRUE(reader.ok()) << reader.status();
    while (reader.ok()) {
      const auto part = Wait<std::optional<WeightPart>>(
          [&](DoneCallback<std::optional<WeightPart>> done) { (*reader)->Next(std::move(done)); });
      EXPECT_TRUE(part.ok()) << part.status();
      if (!part.ok() || !part->has_value()) break;
      parts.push_back(**part);
    }
    return parts;
  }
};

TEST_F(ReadWeightsTest, GivesStoredPlanesWhereTheyLie) {
  WriteSource();
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription model, Create(Spec("m")));
  ReadWeightsSpec spec;
  spec.name = "m";
  spec.weights = {absl::StrCat(kQuery, ".weight")};
  spec.plane = PlaneKind::kRow;
  const std::vector<WeightPart> parts = ReadAll(spec);
  const Plane& row = *model.version->FindLayer(kQuery)->weight->row;
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].bytes.data(), row.payload.data());
  EXPECT_EQ(parts[0].part, PlanePart::kPayload);
  EXPECT_EQ(parts[0].dtype, DType::kF8E4M3);
  EXPECT_THAT(parts[0].shape, ElementsAre(64, 64));
  EXPECT_EQ(parts[1].bytes.data(), row.scales.data());
  EXPECT_EQ(parts[1].dtype, DType::kF8E8M0);
  EXPECT_THAT(parts[1].shape, ElementsAre(128, 4));
  EXPECT_NE(parts[0].checksum, parts[1].checksum);
  spec.weights.clear();
  EXPECT_THAT(ReadAll(spec), SizeIs(2 * model.version->layers.size()));
  // Every layer of this model has a bias, and no weight is kept in high precision.
  spec.plane = PlaneKind::kHighPrecision;
  EXPECT_THAT(ReadAll(spec), SizeIs(model.version->layers.size()));
  EXPECT_EQ(catalog().Describe("m")->lease_count, 0);
}

// So that what was read can be loaded again.
TEST_F(ReadWeightsTest, BiasesHaveTheShapeOfTheirSource) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  ReadWeightsSpec stored;
  stored.name = "m";
  stored.weights = {absl::StrCat(kQuery, ".bias")};
  stored.plane = PlaneKind::kHighPrecision;
  ReadWeightsSpec dequantized = stored;
  dequantized.plane = std::nullopt;
  dequantized.dequantize_to = DType::kF32;
  for (const ReadWeightsSpec& spec : {stored, dequantized}) {
    const std::vector<WeightPart> parts = ReadAll(spec);
    ASSERT_THAT(parts, SizeIs(1));
    EXPECT_THAT(parts[0].shape, ElementsAre(64));
  }
}

TEST_F(ReadWeightsTest, DequantizesCloseToTheSource) {
  std::vector<ModelTensor> source = RandomTensors(kTinyBert, DType::kF32, 1);
  WriteSource(source);
  PW_ASSERT_OK(Create(Spec("m")));
  ReadWeightsSpec spec;
  spec.name = "m";
  spec.weights = {absl::StrCat(kQuery, ".weight")};
  spec.dequantize_to = DType::kF32;
  {
    const std::vector<WeightPart> parts = ReadAll(spec);
    ASSERT_THAT(parts, SizeIs(1));
    const auto* values = reinterpret_cast<const float*>(parts[0].bytes.data());
    const auto* exact =
        reinterpret_cast<const float*>(FindTensor(source, spec.weights[0]).bytes.data());
    for (int i = 0; i < 64 * 64; ++i) {
      // BF16 keeps 8 bits, E4M3 4 of a normal code; the smallest normal code of a
      // block whose maximum is below 1/8 is 2^-6 * 2^-11 * 2: below it, steps of 2^-3 of that.
      ASSERT_NEAR(values[i], exact[i], std::abs(exact[i]) / 16 + std::ldexp(1.0f, -17)) << i;
    }
  }
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransport), 0) << "they went with their owner";
}

TEST_F(ReadWeightsTest, RefusesWhatIsNotThere) {
  WriteSource();
  PW_ASSERT_OK(Create(Spec("m")));
  const auto read = [&](auto change) {
    ReadWeightsSpec spec;
    spec.name = "m";
    spec.plane = PlaneKind::kRow;
    change(spec);
    return catalog().ReadWeights(principal_, spec).status();
  };
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.name = "n"; }), HasReason(Reason::kNotFound));
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.version = WeightVersion(9); }),
              HasReason(Reason::kNotFound, HasSubstr("version 9")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.weights = {"w"}; }),
              HasReason(Reason::kNotFound, HasSubstr("no weight \"w\"")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.plane = PlaneKind::kColumn; }),
              HasReason(Reason::kNotFound, HasSubstr("no weight has its column plane stored")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) {
                s.plane = PlaneKind::kColumn;
                s.weights = {absl::StrCat(kQuery, ".weight")};
              }),
              HasReason(Reason::kNotFound, HasSubstr("column plane is not stored")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.dequantize_to = DType::kF32; }),
              HasReason(Reason::kInvalidRequest, HasSubstr("both set")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) { s.plane.reset(); }),
              HasReason(Reason::kInvalidRequest, HasSubstr("none set")));
  EXPECT_THAT(read([](ReadWeightsSpec& s) {
                s.plane.reset();
                s.dequantize_to = DType::kU8;
              }),
              HasReason(Reason::kDtypeUnsupported));
}

}  // namespace
}  // namespace planewise
