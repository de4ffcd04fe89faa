"""Boxes, masks and pictures, in NumPy; pictures of files and drawing need Pillow (the extra `image`).

boxes, suppression    conversion, areas and overlaps of boxes; non-maximum suppression
masks                 masks as COCO's run-length codes; areas and boxes of masks
letterbox             a picture in the middle of a canvas of fixed size
detection, drawing    an object in a picture; boxes, masks and labels drawn on it
"""

from __future__ import annotations

from tallow.vision.boxes import box_area, box_convert, box_iou, clip_boxes
from tallow.vision.detection import Detection
from tallow.vision.drawing import draw_detections, draw_segments
from tallow.vision.letterbox import Letterboxed, letterbox
from tallow.vision.masks import decode_rle, encode_rle, mask_area, mask_box
from tallow.vision.suppression import batched_nms, nms

__all__ = [
    "Detection",
    "Letterboxed",
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes",
    "decode_rle",
    "draw_detections",
    "draw_segments",
    "encode_rle",
    "letterbox",
    "mask_area",
    "mask_box",
    "nms",
]
