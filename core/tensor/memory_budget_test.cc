#include "core/tensor/memory_budget.h"

#include "core/base/error.h"
#include "core/tensor/host_buffer.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(MemoryBudgetTest, RefusesBeyondTheLimitAndKeepsTheCount) {
  const auto budget = MemoryBudget::Create(100);
  auto first = budget->Reserve(MemoryUse::kWeights, 60, "a");
  ASSERT_TRUE(first.ok());
  const auto second = budget->Reserve(MemoryUse::kTransient, 41, "model \"b\"");
  EXPECT_EQ(ReasonOf(second.status()), Reason::kMemoryShortfall);
  EXPECT_EQ(second.status().message(),
            "model \"b\": needs 41 bytes for transient, 40 of 100 are free (short of 1)");
  EXPECT_EQ(budget->used_bytes(), 60);
  first = Reservation();
  EXPECT_EQ(budget->used_bytes(), 0);
  EXPECT_EQ(budget->peak_bytes(MemoryUse::kWeights), 60);
}

TEST(MemoryBudgetTest, MovedReservationsCountOnce) {
  const auto budget = MemoryBudget::Create(100);
  Reservation a = *budget->Reserve(MemoryUse::kWeights, 10, "a");
  Reservation b = std::move(a);
  EXPECT_EQ(budget->used_bytes(MemoryUse::kWeights), 10);
  b = *budget->Reserve(MemoryUse::kWeights, 20, "b");
  EXPECT_EQ(budget->used_bytes(MemoryUse::kWeights), 20);
}

TEST(MemoryBudgetTest, ChargeToMovesTheCount) {
  const auto budget = MemoryBudget::Create(100);
  Reservation a = *budget->Reserve(MemoryUse::kTransport, 10, "a");
  a.ChargeTo(MemoryUse::kSavedOperands);
  EXPECT_EQ(budget->used_bytes(MemoryUse::kTransport), 0);
  EXPECT_EQ(budget->used_bytes(MemoryUse::kSavedOperands), 10);
  EXPECT_EQ(budget->used_bytes(), 10);
}

TEST(MemoryBudgetTest, AdmittedBytesAreTheWorksAlone) {
  const auto budget = MemoryBudget::Create(100);
  EXPECT_EQ(ReasonOf(budget->Admit(101, "load").status()), Reason::kMemoryShortfall);
  EXPECT_EQ(budget->used_bytes(), 0);

  Reservation weights;
  {
    auto admission = budget->Admit(80, "load");
    ASSERT_TRUE(admission.ok());
    EXPECT_EQ(budget->used_bytes(), 80);
    EXPECT_FALSE(budget->Reserve(MemoryUse::kTransport, 21, "session").ok());

    MemoryBudget& inside = admission->budget();
    weights = *inside.Reserve(MemoryUse::kWeights, 50, "w");
    {
      const Reservation scratch = *inside.Reserve(MemoryUse::kTransient, 30, "scratch");
      EXPECT_FALSE(inside.Reserve(MemoryUse::kTransient, 1, "more").ok());
    }
    EXPECT_EQ(inside.peak_bytes(MemoryUse::kTransient), 30);
    EXPECT_EQ(budget->used_bytes(MemoryUse::kWeights), 50);
    EXPECT_EQ(budget->used_bytes(), 80) << "scratch went back to the admission, not to others";
  }
  EXPECT_EQ(budget->used_bytes(), 50) << "the rest went back";
  weights.ChargeTo(MemoryUse::kSavedOperands);
  EXPECT_EQ(budget->used_bytes(MemoryUse::kSavedOperands), 50);
  weights = Reservation();
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(HostBufferTest, IsZeroedAlignedAndCounted) {
  const auto budget = MemoryBudget::Create(1000);
  {
    const auto buffer = HostBuffer::Allocate(*budget, MemoryUse::kTransient, 77, "x");
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kHostAlignmentBytes, 0u);
    for (const std::byte b : buffer->bytes()) EXPECT_EQ(b, std::byte{0});
    EXPECT_EQ(budget->used_bytes(MemoryUse::kTransient), 77);
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

}  // namespace
}  // namespace planewise
