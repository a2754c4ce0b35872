"""More small models, written after the importer had passed the others."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Crnn(nn.Module):
    """Convolutions, then recurrent layers over columns of an image."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.MaxPool2d((2, 1), (2, 1)))
        self.rnn = nn.LSTM(16 * 4, 24, bidirectional=True, num_layers=2)
        self.head = nn.Linear(48, 11)

    def forward(self, image):
        x = self.conv(image)
        n, c, h, w = x.shape
        x = x.reshape(n, c * h, w).permute(2, 0, 1)
        return F.log_softmax(self.head(self.rnn(x)[0]), 2)


class Attender(nn.Module):
    """A recurrent decoder that looks at an encoder at each step."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.encoder = nn.GRU(16, 20, batch_first=True)
        self.cell = nn.GRUCell(36, 20)
        self.w, self.v = nn.Linear(40, 20), nn.Linear(20, 1, bias=False)
        self.out = nn.Linear(20, 50)

    def forward(self, source, target):
        memory, h = self.encoder(self.words(source))
        h, steps = h[0], []
        for i in range(target.size(1)):
            query = h.unsqueeze(1).repeat(1, memory.size(1), 1)
            scores = self.v(torch.tanh(self.w(torch.cat([query, memory], -1))))
            context = (scores.softmax(1) * memory).sum(1)
            h = self.cell(torch.cat([self.words(target[:, i]), context], -1), h)
            steps.append(self.out(h))
        return torch.stack(steps, 1)


class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.ReLU())
        self.queries = nn.Parameter(torch.randn(6, 32))
        self.rows = nn.Parameter(torch.randn(8, 16))
        self.columns = nn.Parameter(torch.randn(8, 16))
        self.body = nn.Transformer(32, 4, 1, 2, 48, 0.0, batch_first=True)
        self.classes, self.boxes = nn.Linear(32, 5), nn.Linear(32, 4)

    def forward(self, image):
        x = self.stem(image)
        h, w = x.shape[-2:]
        places = torch.cat([
            self.columns[:w].unsqueeze(0).repeat(h, 1, 1),
            self.rows[:h].unsqueeze(1).repeat(1, w, 1)], -1).flatten(0, 1)
        x = x.flatten(2).permute(0, 2, 1) + places.unsqueeze(0)
        queries = self.queries.unsqueeze(0).repeat(x.shape[0], 1, 1)
        y = self.body(x, queries)
        return self.classes(y), self.boxes(y).sigmoid()


class Roberta(nn.Module):
    """Places are counted over words that are no padding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(80, 24, padding_idx=1)
        self.places = nn.Embedding(40, 24, padding_idx=1)
        self.layer = nn.TransformerEncoderLayer(24, 3, 48, 0.0, 'gelu',
                                                batch_first=True)
        self.head = nn.Linear(24, 80)

    def forward(self, ids):
        mask = ids.ne(1).int()
        at = (torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1
        x = self.words(ids) + self.places(at)
        x = self.layer(x, src_key_padding_mask=ids.eq(1))
        return self.head(x)


class Deberta(nn.Module):
    """Scores of words and of distances, gathered along rows."""

    def __init__(self):
        super().__init__()
        self.words, self.far = nn.Embedding(60, 32), nn.Parameter(
            torch.randn(16, 32))
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, ids):
        x = self.words(ids)
        n, t, c = x.shape
        q, k, v = (f(x).view(n, t, 4, 8).permute(0, 2, 1, 3)
                   for f in (self.q, self.k, self.v))
        far = self.k(self.far).view(1, 16, 4, 8).permute(0, 2, 3, 1)
        apart = torch.arange(t)[:, None] - torch.arange(t)[None]
        at = (apart + 8).clamp(0, 15).expand(n, 4, t, t)
        scores = q @ k.transpose(-1, -2) + torch.gather(q @ far, -1, at)
        y = (scores / math.sqrt(24)).softmax(-1) @ v
        return y.permute(0, 2, 1, 3).contiguous().view(n, t, c)


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(),
                                 nn.Conv2d(8, 8, 3, 2), nn.ReLU())
        self.enter = nn.Linear(8 * 4, 24)
        self.ff = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 48), nn.SiLU(),
                                nn.Linear(48, 24))
        self.norm = nn.LayerNorm(24)
        self.attention = nn.MultiheadAttention(24, 4, batch_first=True)
        self.wide, self.deep = nn.Conv1d(24, 48, 1), nn.Conv1d(
            24, 24, 7, padding=3, groups=24)
        self.bn, self.thin = nn.BatchNorm1d(24), nn.Conv1d(24, 24, 1)

    def forward(self, sound):
        x = self.sub(sound.unsqueeze(1))
        n, c, t, f = x.shape
        x = self.enter(x.transpose(1, 2).reshape(n, t, c * f))
        x = x + 0.5 * self.ff(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y)[0]
        y = F.glu(self.wide(self.norm(x).transpose(1, 2)), 1)
        x = x + self.thin(F.silu(self.bn(self.deep(y)))).transpose(1, 2)
        return x + 0.5 * self.ff(x)


class StyleBlock(nn.Module):
    """Filters that depend on the input; noise is an input, too."""

    def __init__(self):
        super().__init__()
        self.style = nn.Linear(16, 8)
        self.weight = nn.Parameter(torch.randn(12, 8, 3, 3))
        self.rgb = nn.Conv2d(12, 3, 1)

    def forward(self, x, style, noise):
        n, c, h, w = x.shape
        s = self.style(style).view(n, 1, c, 1, 1) + 1
        weight = self.weight.unsqueeze(0) * s
        weight = weight * torch.rsqrt(
            weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        y = F.conv2d(x.reshape(1, n * c, h, w),
                     weight.reshape(n * 12, c, 3, 3), padding=1, groups=n)
        y = F.leaky_relu(y.reshape(n, 12, h, w) + noise, 0.2) * math.sqrt(2)
        y = F.interpolate(y, scale_factor=2, mode='bicubic',
                          align_corners=False)
        return self.rgb(y).clamp(-1, 1)


class VectorQuantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 4, 2, 1)
        self.codes = nn.Parameter(torch.randn(20, 8))
        self.up = nn.ConvTranspose2d(8, 3, 4, 2, 1)

    def forward(self, image):
        z = self.down(image).permute(0, 2, 3, 1)
        flat = z.reshape(-1, 8)
        apart = (flat**2).sum(1, keepdim=True) + (self.codes**2).sum(
            1) - 2 * flat @ self.codes.t()
        at = apart.argmin(1)
        quantized = self.codes[at].view(z.shape)
        return self.up(quantized.permute(0, 3, 1, 2)), at.view(z.shape[:3])


class Spatial(nn.Module):
    """A transformer network that turns its image."""

    def __init__(self):
        super().__init__()
        self.place = nn.Sequential(nn.Flatten(), nn.Linear(3 * 144, 6))
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image):
        theta = torch.tanh(self.place(image)).view(-1, 2, 3)
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 10),
                                torch.linspace(-1, 1, 10), indexing='ij')
        at = torch.stack([xs, ys, torch.ones_like(xs)], -1).view(1, 100, 3)
        grid = (at @ theta.transpose(1, 2)).view(-1, 10, 10, 2)
        turned = F.grid_sample(image, grid, align_corners=False)
        mirrored = F.grid_sample(image, grid, padding_mode='reflection',
                                 align_corners=True)
        return self.conv(turned), mirrored


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(3, 8, 3, (1, 2, 2), 1), nn.BatchNorm3d(8), nn.ReLU(),
            nn.MaxPool3d((1, 2, 2)), nn.Conv3d(8, 8, (3, 1, 1), groups=2),
            nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 5))

    def forward(self, video):
        return self.body(video)


class CenterNet(nn.Module):
    """Peaks of a map, by pooling, and what stands there."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 16, 3, 2, 1)
        self.heat, self.size = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 2, 1)

    def forward(self, image):
        x = F.relu(self.body(image))
        heat = torch.sigmoid(self.heat(x))
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        n, c, h, w = heat.shape
        scores, at = torch.topk(heat.view(n, -1), 7)
        classes = torch.div(at, h * w, rounding_mode='floor')
        place = at % (h * w)
        ys, xs = torch.div(place, w, rounding_mode='floor'), place % w
        size = self.size(x).permute(0, 2, 3, 1).view(n, -1, 2)
        size = size.gather(1, place.unsqueeze(2).expand(n, 7, 2))
        return torch.cat([xs.unsqueeze(2).float(), ys.unsqueeze(2).float(),
                          size, scores.unsqueeze(2)], 2), classes


class GraphAttention(nn.Module):
    """Attention over a dense adjacency, many heads."""

    def __init__(self):
        super().__init__()
        self.w = nn.Linear(10, 24, bias=False)
        self.a, self.b = nn.Parameter(torch.randn(3, 8)), nn.Parameter(
            torch.randn(3, 8))

    def forward(self, x, adjacent):
        h = self.w(x).view(-1, 3, 8)
        e = (h * self.a).sum(-1).unsqueeze(1) + (h * self.b).sum(-1).unsqueeze(0)
        e = F.leaky_relu(e, 0.2).masked_fill(
            (adjacent == 0).unsqueeze(-1), float('-inf'))
        return F.elu(torch.einsum('ijh,jhf->ihf', e.softmax(1), h).flatten(1))


class CrossInteraction(nn.Module):
    """xDeepFM: outer products of fields, mixed by convolutions."""

    def __init__(self):
        super().__init__()
        self.tables = nn.Embedding(60, 6)
        self.convs = nn.ModuleList([nn.Conv1d(25, 10, 1), nn.Conv1d(50, 10, 1)])
        self.head = nn.Linear(20, 1)
        self.register_buffer('offsets', torch.arange(5) * 12)

    def forward(self, ids):
        x0 = self.tables(ids + self.offsets)
        x, sums = x0, []
        for conv in self.convs:
            z = torch.einsum('bhd,bmd->bhmd', x, x0).flatten(1, 2)
            x = F.relu(conv(z))
            sums.append(x.sum(-1))
        return torch.sigmoid(self.head(torch.cat(sums, 1)))


class SequenceRecommender(nn.Module):
    """SASRec: causal attention over items, scores of candidates."""

    def __init__(self):
        super().__init__()
        self.items, self.places = nn.Embedding(40, 16, padding_idx=0), \
            nn.Embedding(12, 16)
        self.attention = nn.MultiheadAttention(16, 2)
        self.norm = nn.LayerNorm(16, eps=1e-8)
        self.conv = nn.Conv1d(16, 16, 1)

    def forward(self, history, candidates):
        x = self.items(history) * 4 + self.places(torch.arange(12))
        x = x * (history != 0).unsqueeze(-1)
        q = self.norm(x).transpose(0, 1)
        mask = ~torch.tril(torch.ones(12, 12, dtype=torch.bool))
        y = self.attention(q, x.transpose(0, 1), x.transpose(0, 1),
                           attn_mask=mask)[0]
        y = (q + y).transpose(0, 1)
        y = y + self.conv(y.transpose(-1, -2)).transpose(-1, -2)
        return (self.norm(y)[:, -1].unsqueeze(1) *
                self.items(candidates)).sum(-1)


class Flow(nn.Module):
    """Odds and ends: slices that are written, norms, counts, signs."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 8)

    def forward(self, x):
        a, b = x[:, ::2], x[:, 1::2]
        log_scale, shift = self.net(a).chunk(2, 1)
        y = torch.zeros_like(x)
        y[:, ::2] = a
        y[:, 1::2] = b * torch.exp(torch.tanh(log_scale)) + shift
        y = torch.flip(y, [1])
        tri = torch.tril(torch.outer(y[0], y[1]))
        hist = (y.unsqueeze(-1) > torch.linspace(-1, 1, 5)).sum(1)
        return (y, log_scale.sum(1), tri, hist, torch.sign(y).abs(),
                torch.where(y.abs() < 0.5, y.round(), torch.floor(y)),
                torch.linalg.norm(y, dim=1), y.logsumexp(1), F.hardtanh(y),
                y.sort(1)[0])


def image(side, n=2, c=3):
    return {'image': torch.randn(n, c, side, side)}


MODELS = {
    'crnn': (Crnn, lambda: {'image': torch.randn(2, 1, 16, 24)}),
    'seq2seq': (Attender, lambda: {
        'source': torch.randint(0, 50, (2, 7)),
        'target': torch.randint(0, 50, (2, 5))}),
    'detr': (Detr, lambda: image(32)),
    'roberta': (Roberta, lambda: {'ids': torch.tensor(
        [[5, 7, 9, 33, 12, 2], [8, 3, 4, 2, 1, 1]])}),
    'deberta': (Deberta, lambda: {'ids': torch.randint(0, 60, (2, 11))}),
    'conformer': (Conformer, lambda: {'sound': torch.randn(2, 30, 19)}),
    'stylegan': (StyleBlock, lambda: {
        'x': torch.randn(2, 8, 8, 8), 'style': torch.randn(2, 16),
        'noise': torch.randn(2, 1, 8, 8)}),
    'vqvae': (VectorQuantizer, lambda: image(12)),
    'stn': (Spatial, lambda: image(12)),
    'video': (Video, lambda: {'video': torch.randn(1, 3, 6, 16, 16)}),
    'centernet': (CenterNet, lambda: image(24)),
    'gat': (GraphAttention, lambda: {
        'x': torch.randn(9, 10),
        'adjacent': torch.eye(9) + (torch.rand(9, 9) > 0.6)}),
    'xdeepfm': (CrossInteraction, lambda: {
        'ids': torch.randint(0, 12, (6, 5))}),
    'sasrec': (SequenceRecommender, lambda: {
        'history': torch.randint(0, 40, (3, 12)),
        'candidates': torch.randint(1, 40, (3, 8))}),
    'flow': (Flow, lambda: {'x': torch.randn(3, 8)}),
}
