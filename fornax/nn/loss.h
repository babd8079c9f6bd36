// Losses: nn::functional's functions and the modules. `reduction` is kMean, kSum or kNone.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

namespace functional {

using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using L1LossFuncOptions = L1LossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using MSELossFuncOptions = MSELossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;

// target: class indices, or probabilities of input's shape.
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyFuncOptions& options = {});
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(
    const Tensor& input, const Tensor& target,
    const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1LossFuncOptions& options = {});
Tensor huber_loss(const Tensor& input, const Tensor& target,
                  const HuberLossFuncOptions& options = {});
// input: log probabilities. kBatchMean divides the sum by the batch size.
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options = {});
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options = {});
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& options = {});
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options = {});
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options = {});
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& options = {});
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& options = {});
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options = {});
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options = {});
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                         const CosineSimilarityFuncOptions& options = {});
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                         const PairwiseDistanceFuncOptions& options = {});

}  // namespace functional

#define FX_LOSS(Name, Options)                                 \
  class Name##Impl : public Cloneable<Name##Impl> {            \
   public:                                                     \
    explicit Name##Impl(const Options& options = {});          \
    void reset() override {}                                   \
    void pretty_print(std::ostream& stream) const override;    \
    Tensor forward(const Tensor& input, const Tensor& target); \
    Options options;                                           \
  };                                                           \
  FORNAX_MODULE(Name)
// As FX_LOSS, with class weights (and `pos_weight`) as buffers.
#define FX_WEIGHTED_LOSS(Name, Options)                        \
  class Name##Impl : public Cloneable<Name##Impl> {            \
   public:                                                     \
    explicit Name##Impl(const Options& options = {});          \
    void reset() override;                                     \
    void pretty_print(std::ostream& stream) const override;    \
    Tensor forward(const Tensor& input, const Tensor& target); \
    Options options;                                           \
    Tensor weight, pos_weight;                                 \
  };                                                           \
  FORNAX_MODULE(Name)
#define FX_LOSS3(Name, Options)                                                     \
  class Name##Impl : public Cloneable<Name##Impl> {                                 \
   public:                                                                          \
    explicit Name##Impl(const Options& options = {});                               \
    void reset() override {}                                                        \
    void pretty_print(std::ostream& stream) const override;                         \
    Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third); \
    Options options;                                                                \
  };                                                                                \
  FORNAX_MODULE(Name)
FX_WEIGHTED_LOSS(CrossEntropyLoss, CrossEntropyLossOptions);
FX_WEIGHTED_LOSS(NLLLoss, NLLLossOptions);
FX_WEIGHTED_LOSS(BCELoss, BCELossOptions);
FX_WEIGHTED_LOSS(BCEWithLogitsLoss, BCEWithLogitsLossOptions);
FX_WEIGHTED_LOSS(MultiMarginLoss, MultiMarginLossOptions);
FX_WEIGHTED_LOSS(MultiLabelSoftMarginLoss, MultiLabelSoftMarginLossOptions);
FX_LOSS(MSELoss, MSELossOptions);
FX_LOSS(L1Loss, L1LossOptions);
FX_LOSS(SmoothL1Loss, SmoothL1LossOptions);
FX_LOSS(HuberLoss, HuberLossOptions);
FX_LOSS(KLDivLoss, KLDivLossOptions);
FX_LOSS(HingeEmbeddingLoss, HingeEmbeddingLossOptions);
FX_LOSS(SoftMarginLoss, SoftMarginLossOptions);
FX_LOSS(PoissonNLLLoss, PoissonNLLLossOptions);
FX_LOSS(MultiLabelMarginLoss, MultiLabelMarginLossOptions);
FX_LOSS(CosineSimilarity, CosineSimilarityOptions);
FX_LOSS(PairwiseDistance, PairwiseDistanceOptions);
FX_LOSS3(MarginRankingLoss, MarginRankingLossOptions);
FX_LOSS3(CosineEmbeddingLoss, CosineEmbeddingLossOptions);
FX_LOSS3(TripletMarginLoss, TripletMarginLossOptions);
#undef FX_LOSS
#undef FX_WEIGHTED_LOSS
#undef FX_LOSS3

}  // namespace fornax::nn
