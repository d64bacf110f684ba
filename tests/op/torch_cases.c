// Operations that take a few lines each: elementwise ones, moves, windows and losses. The
// permutations in a formula bring images, sequences and volumes into PyTorch's order of axes.
#include "op/torch_cases.h"

#define BY(name, expression) \
	static choir_tensor *name(choir_tensor *const in[], void *user) \
	{ \
		(void) user; \
		return expression; \
	}
#define CONV(...) CHOIR_OPTIONS(choir_conv_options, __VA_ARGS__)

BY(negate, choir_negate(in[0]))
BY(absolute, choir_abs(in[0]))
BY(sign, choir_sign(in[0]))
BY(rounded, choir_add(choir_floor(in[0]), choir_add(choir_ceil(in[0]), choir_round(in[0]))))
BY(sine, choir_sin(in[0]))
BY(cosine, choir_cos(in[0]))
BY(tangent, choir_tan(in[0]))
BY(erf_of, choir_erf(in[0]))
BY(expm1_of, choir_expm1(in[0]))
BY(log1p_of, choir_log1p(in[0]))
BY(rsqrt_of, choir_rsqrt(in[0]))
BY(clip, choir_clip(in[0], -0.5, 0.75))
BY(leaky, choir_leaky_relu(in[0], 0.1))
BY(elu, choir_elu(in[0], 1.5))
BY(power, choir_pow(in[0], in[1]))
BY(angle, choir_atan2(in[0], in[1]))
BY(minimum, choir_minimum(in[0], in[1]))
BY(chosen,
		choir_where(choir_less(in[0], in[1]), choir_square(in[0]), choir_multiply(in[0], in[1])))
BY(sums_of_rows, choir_cumsum(in[0], 1, NULL))
BY(sums_from_the_end,
		choir_cumsum(in[0], 0, CHOIR_OPTIONS(choir_cumsum_options, .reverse = CHOIR_ON)))
BY(product, choir_prod(in[0], CHOIR_AXIS(-1)))
BY(extremes, choir_multiply(choir_max(in[0], CHOIR_AXIS(1)), choir_min(in[0], CHOIR_AXIS(0))))
BY(tiled, choir_tile(in[0], (const int64_t[]){ 2, 3 }))
BY(stacked, choir_stack(2, (choir_tensor *const[]){ in[0], choir_flip(in[1], 1) }, -1))
BY(padded,
		choir_pad(in[0], (const int64_t[]){ 1, 2 }, (const int64_t[]){ 0, 3 },
				CHOIR_OPTIONS(choir_pad_options, .value = 0.5)))
BY(reflected,
		choir_pad(in[0], (const int64_t[]){ 0, 2 }, (const int64_t[]){ 0, 3 },
				CHOIR_OPTIONS(choir_pad_options, .mode = CHOIR_PAD_REFLECT)))
BY(contracted, choir_einsum("bij,jkb->ikb", in[0], in[1]))
BY(volume, choir_conv3d(in[0], in[1], CONV(.stride = 2, .padding = 1)))
BY(sequence_back, choir_conv1d_transpose(in[0], in[1], CONV(.stride = 3, .padding = 1)))
BY(image_back, choir_conv2d_transpose(in[0], in[1], CONV(.stride = 2, .padding = 1)))
BY(groups_back, choir_conv2d_transpose(in[0], in[1], CONV(.groups = 2, .dilation = 2)))
BY(volume_back, choir_conv3d_transpose(in[0], in[1], CONV(.stride = 2)))
BY(largest_of_sequence, choir_max_pool1d(in[0], 3, 2, 1))
BY(mean_of_sequence, choir_average_pool1d(in[0], 3, 2, 1))
BY(largest_of_volume, choir_max_pool3d(in[0], 3, 2, 1))
BY(mean_of_volume, choir_average_pool3d(in[0], 3, 2, 1))
BY(largest_of_all, choir_global_max_pool(in[0]))
BY(mean_of_all, choir_global_average_pool(in[0]))
BY(nearest, choir_upsample(in[0], 3, CHOIR_NEAREST))
BY(bilinear, choir_upsample(in[0], 2, CHOIR_BILINEAR))
BY(grouped, choir_group_norm(in[0], in[1], in[2], 3, 1e-5))
BY(masked,
		choir_attention(
				in[0], in[1], in[2], CHOIR_OPTIONS(choir_attention_options, .mask = in[3])))
BY(hinge, choir_hinge(in[0], in[1]))
BY(divergence, choir_kl_divergence(in[0], in[1]))

#define SHAPE(...) \
	{ \
		sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		{ \
			__VA_ARGS__ \
		} \
	}
#define ONE(formula, fn) \
	{ \
		formula, fn, 1, { SHAPE(7, 33) }, false \
	}
#define ROOT(formula, fn) \
	{ \
		formula, fn, 1, { SHAPE(7, 33) }, true \
	}
#define TWO(formula, fn) \
	{ \
		formula, fn, 2, { SHAPE(3, 1, 5), SHAPE(4, 1) }, true \
	}
#define SEQUENCE "a.permute(0, 2, 1)"
#define VOLUME "a.permute(0, 4, 1, 2, 3)"
#define BACK ".permute(0, 2, 1)"
#define VOLUME_BACK ".permute(0, 2, 3, 4, 1)"

const torch_case torch_cases[] = {
	ONE("-a", negate),
	ONE("a.abs()", absolute),
	ONE("a.sign()", sign),
	ONE("a.floor() + a.ceil() + a.round()", rounded),
	ONE("a.sin()", sine),
	ONE("a.cos()", cosine),
	ONE("a.tan()", tangent),
	ONE("a.erf()", erf_of),
	ONE("a.expm1()", expm1_of),
	ROOT("a.log1p()", log1p_of),
	ROOT("a.rsqrt()", rsqrt_of),
	ONE("a.clamp(-0.5, 0.75)", clip),
	ONE("F.leaky_relu(a, 0.1)", leaky),
	ONE("F.elu(a, 1.5)", elu),
	TWO("a ** b", power),
	TWO("torch.atan2(a, b)", angle),
	TWO("torch.minimum(a, b)", minimum),
	TWO("torch.where(a < b, a * a, a * b)", chosen),
	ONE("a.cumsum(1)", sums_of_rows),
	ONE("a.flip(0).cumsum(0).flip(0)", sums_from_the_end),
	{ "a.prod(-1)", product, 1, { SHAPE(9, 6) }, false },
	{ "a.amax(1) * a.amin(0)", extremes, 1, { SHAPE(8, 8) }, false },
	ONE("a.tile(2, 3)", tiled),
	{ "torch.stack([a, b.flip(1)], -1)", stacked, 2, { SHAPE(3, 4), SHAPE(3, 4) }, false },
	ONE("F.pad(a, (2, 3, 1, 0), value=0.5)", padded),
	ONE("F.pad(a, (2, 3), mode='reflect')", reflected),
	{ "torch.einsum('bij,jkb->ikb', a, b)", contracted, 2, { SHAPE(3, 4, 5), SHAPE(5, 6, 3) },
			false },
	{ "F.conv3d(" VOLUME ", b.permute(4, 3, 0, 1, 2), None, 2, 1)" VOLUME_BACK, volume, 2,
			{ SHAPE(2, 5, 6, 7, 3), SHAPE(3, 3, 3, 3, 4) }, false },
	{ "F.conv_transpose1d(" SEQUENCE ", b.permute(2, 1, 0), None, 3, 1)" BACK, sequence_back, 2,
			{ SHAPE(2, 6, 4), SHAPE(5, 3, 4) }, false },
	{ "nhwc(F.conv_transpose2d(nchw(a), oihw(b), None, 2, 1))", image_back, 2,
			{ SHAPE(2, 5, 6, 4), SHAPE(4, 4, 3, 4) }, false },
	{ "nhwc(F.conv_transpose2d(nchw(a), oihw(b), None, 1, 0, 0, 2, 2))", groups_back, 2,
			{ SHAPE(2, 5, 6, 4), SHAPE(3, 3, 3, 4) }, false },
	{ "F.conv_transpose3d(" VOLUME ", b.permute(4, 3, 0, 1, 2), None, 2)" VOLUME_BACK, volume_back,
			2, { SHAPE(1, 3, 4, 2, 4), SHAPE(3, 3, 3, 2, 4) }, false },
	{ "F.max_pool1d(" SEQUENCE ", 3, 2, 1)" BACK, largest_of_sequence, 1, { SHAPE(3, 11, 5) },
			false },
	{ "F.avg_pool1d(" SEQUENCE ", 3, 2, 1, count_include_pad=False)" BACK, mean_of_sequence, 1,
			{ SHAPE(3, 11, 5) }, false },
	{ "F.max_pool3d(" VOLUME ", 3, 2, 1)" VOLUME_BACK, largest_of_volume, 1,
			{ SHAPE(2, 5, 6, 7, 3) }, false },
	{ "F.avg_pool3d(" VOLUME ", 3, 2, 1, count_include_pad=False)" VOLUME_BACK, mean_of_volume, 1,
			{ SHAPE(2, 5, 6, 7, 3) }, false },
	{ "a.amax((1, 2))", largest_of_all, 1, { SHAPE(3, 4, 5, 6) }, false },
	{ "a.mean((1, 2))", mean_of_all, 1, { SHAPE(3, 4, 5, 6) }, false },
	{ "nhwc(F.interpolate(nchw(a), scale_factor=3))", nearest, 1, { SHAPE(2, 3, 4, 5) }, false },
	{ "nhwc(F.interpolate(nchw(a), scale_factor=2, mode='bilinear', align_corners=False))",
			bilinear, 1, { SHAPE(2, 3, 4, 5) }, false },
	{ "nhwc(F.group_norm(nchw(a), 3, b, c, 1e-5))", grouped, 3,
			{ SHAPE(2, 5, 4, 6), SHAPE(6), SHAPE(6) }, false },
	{ "F.scaled_dot_product_attention(a, b, c, attn_mask=d)", masked, 4,
			{ SHAPE(3, 5, 8), SHAPE(3, 9, 8), SHAPE(3, 9, 8), SHAPE(5, 9) }, false },
	{ "F.relu(1 - a * b).mean(1)", hinge, 2, { SHAPE(9, 5), SHAPE(9, 5) }, false },
	{ "F.kl_div(b.log(), a, reduction='none').sum(1)", divergence, 2, { SHAPE(9, 5), SHAPE(9, 5) },
			true },
};
const size_t n_torch_cases = sizeof torch_cases / sizeof torch_cases[0];
