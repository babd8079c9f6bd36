#include "fornax/nn/loss.h"

#include <ostream>

#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::nn {

namespace functional {
namespace {

// ATen's numbers.
int64_t reduction_of(const char* loss, Choice reduction) {
  switch (reduction) {
    case Choice::kNone: return 0;
    case Choice::kMean: return 1;
    case Choice::kSum: return 2;
    default:
      fail(ErrorKind::kValue, loss, ": reduction must be kNone, kMean or kSum, got ",
           name_of(reduction));
  }
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return fornax::cross_entropy_loss(input, target, o.weight(),
                                    reduction_of("cross_entropy", o.reduction()), o.ignore_index(),
                                    o.label_smoothing());
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  return fornax::nll_loss_nd(input, target, o.weight(), reduction_of("nll_loss", o.reduction()),
                             o.ignore_index());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& o) {
  FX_CHECK(input.sizes() == target.sizes(), kShape, "binary_cross_entropy: input has sizes ",
           input.sizes(), ", target ", target.sizes());
  return fornax::binary_cross_entropy(input, target, o.weight(),
                                      reduction_of("binary_cross_entropy", o.reduction()));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  FX_CHECK(input.sizes() == target.sizes(), kShape,
           "binary_cross_entropy_with_logits: input has sizes ", input.sizes(), ", target ",
           target.sizes());
  return fornax::binary_cross_entropy_with_logits(
      input, target, o.weight(), o.pos_weight(),
      reduction_of("binary_cross_entropy_with_logits", o.reduction()));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  return fornax::mse_loss(input, target, reduction_of("mse_loss", o.reduction()));
}
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  return fornax::l1_loss(input, target, reduction_of("l1_loss", o.reduction()));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o) {
  return fornax::smooth_l1_loss(input, target, reduction_of("smooth_l1_loss", o.reduction()),
                                o.beta().value_or(1.0));
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  return fornax::huber_loss(input, target, reduction_of("huber_loss", o.reduction()), o.delta());
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  bool batch_mean = o.reduction() == kBatchMean;
  Choice reduction = batch_mean ? kSum : o.reduction();
  Tensor loss = fornax::kl_div(input, target, reduction_of("kl_div", reduction), o.log_target());
  return batch_mean && input.dim() > 0 ? loss / input.size(0) : loss;
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  return fornax::margin_ranking_loss(input1, input2, target, o.margin(),
                                     reduction_of("margin_ranking_loss", o.reduction()));
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& o) {
  return fornax::hinge_embedding_loss(input, target, o.margin(),
                                      reduction_of("hinge_embedding_loss", o.reduction()));
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& o) {
  return fornax::soft_margin_loss(input, target, reduction_of("soft_margin_loss", o.reduction()));
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  return fornax::cosine_embedding_loss(input1, input2, target, o.margin(),
                                       reduction_of("cosine_embedding_loss", o.reduction()));
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  return fornax::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(),
                                     o.swap(), reduction_of("triplet_margin_loss", o.reduction()));
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& o) {
  return fornax::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(),
                                  reduction_of("poisson_nll_loss", o.reduction()));
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& o) {
  return fornax::multi_margin_loss(input, target, o.p(), o.margin(), o.weight(),
                                   reduction_of("multi_margin_loss", o.reduction()));
}
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& o) {
  return fornax::multilabel_margin_loss(input, target,
                                        reduction_of("multilabel_margin_loss", o.reduction()));
}
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  Tensor loss = fornax::binary_cross_entropy_with_logits(input, target, {}, {}, 0);
  if (o.weight().defined()) loss = loss * o.weight();
  loss = loss.mean(input.dim() - 1);
  int64_t how = reduction_of("multilabel_soft_margin_loss", o.reduction());
  return how == 0 ? loss : how == 1 ? loss.mean() : loss.sum();
}
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o) {
  return fornax::cosine_similarity(x1, x2, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  return fornax::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}

}  // namespace functional

namespace F = functional;

#define FX_LOSS(Name, function)                                                  \
  Name##Impl::Name##Impl(const decltype(options)& options) : options(options) {} \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {        \
    return F::function(input, target, options);                                  \
  }                                                                              \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "fornax::nn::" #Name "()"; }
#define FX_LOSS3(Name, function)                                                               \
  Name##Impl::Name##Impl(const decltype(options)& options) : options(options) {}               \
  Tensor Name##Impl::forward(const Tensor& first, const Tensor& second, const Tensor& third) { \
    return F::function(first, second, third, options);                                         \
  }                                                                                            \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "fornax::nn::" #Name "()"; }
#define FX_WEIGHTED_LOSS(Name, function)                                                   \
  Name##Impl::Name##Impl(const decltype(options)& o) : options(o) { Name##Impl::reset(); } \
  void Name##Impl::reset() { weight = register_buffer("weight", options.weight()); }       \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                  \
    auto o = options;                                                                      \
    return F::function(input, target, o.weight(weight));                                   \
  }                                                                                        \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "fornax::nn::" #Name "()"; }
FX_LOSS(MSELoss, mse_loss)
FX_LOSS(L1Loss, l1_loss)
FX_LOSS(SmoothL1Loss, smooth_l1_loss)
FX_LOSS(HuberLoss, huber_loss)
FX_LOSS(KLDivLoss, kl_div)
FX_LOSS(HingeEmbeddingLoss, hinge_embedding_loss)
FX_LOSS(SoftMarginLoss, soft_margin_loss)
FX_LOSS(PoissonNLLLoss, poisson_nll_loss)
FX_LOSS(CosineSimilarity, cosine_similarity)
FX_LOSS(PairwiseDistance, pairwise_distance)
FX_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
FX_LOSS3(MarginRankingLoss, margin_ranking_loss)
FX_LOSS3(CosineEmbeddingLoss, cosine_embedding_loss)
FX_LOSS3(TripletMarginLoss, triplet_margin_loss)
FX_WEIGHTED_LOSS(CrossEntropyLoss, cross_entropy)
FX_WEIGHTED_LOSS(NLLLoss, nll_loss)
FX_WEIGHTED_LOSS(BCELoss, binary_cross_entropy)
FX_WEIGHTED_LOSS(MultiMarginLoss, multi_margin_loss)
FX_WEIGHTED_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)
#undef FX_LOSS
#undef FX_LOSS3
#undef FX_WEIGHTED_LOSS

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& o) : options(o) {
  BCEWithLogitsLossImpl::reset();
}
void BCEWithLogitsLossImpl::reset() {
  weight = register_buffer("weight", options.weight());
  pos_weight = register_buffer("pos_weight", options.pos_weight());
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  BCEWithLogitsLossOptions o = options;
  return F::binary_cross_entropy_with_logits(input, target,
                                             o.weight(weight).pos_weight(pos_weight));
}
void BCEWithLogitsLossImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::BCEWithLogitsLoss()";
}

}  // namespace fornax::nn
